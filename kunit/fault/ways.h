/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: the n-th step, operation, request or message fails in the life of something, for each n
 * until nothing is left to fail. Implemented in ways.c, kdapl_fault.ko.
 */
#ifndef KDAPL_KUNIT_FAULT_WAYS_H
#define KDAPL_KUNIT_FAULT_WAYS_H

#include "fixture.h"

struct ib_device;

/*
 * struct kdf_way - a way to fail
 * @what: fails; NULL ends a list of ways
 * @err: what the call returns, or the status that the request completes with
 * @arm: have the @nth from now on fail
 * @left: have none fail any more; return 0 if one has
 * @step: how many faults to go forward
 */
struct kdf_way {
	const char *what;
	int err;
	void (*arm)(const struct kdf_way *way, unsigned int nth);
	unsigned int (*left)(void);
	unsigned int step;
};

/*
 * A step of the module; an operation of the device, but none that the case's own thread asks for;
 * a completion, of either side; a request that does not complete. The last two need the simulated
 * adapter that kdf_ways_begin() was told.
 */
extern const struct kdf_way kdf_any_step[];
extern const struct kdf_way kdf_operations[];
extern const struct kdf_way kdf_completions[];
extern const struct kdf_way kdf_never[];

void kdf_ways_begin(struct ib_device *adapter);

/*
 * struct kdf_walk - lives, of which one thing fails in each. The parameters stride and seed of
 * kdapl_fault.ko say which faults of all
 * @world: for @life and @is_whole
 * @life: a life, of which the @nth thing fails in @way; return 0 or the first error number
 * @is_whole: a life in which nothing fails succeeds
 * @broken: what it means if none does in the end
 * @stride: by default, so many faults forward from each to the next, times that of the way
 * @most: faults that there may be
 * @what: fails; set here
 */
struct kdf_walk {
	struct kunit *test;
	void *world;
	int (*life)(void *world, const struct kdf_way *way, unsigned int nth);
	bool (*is_whole)(void *world);
	const char *broken;
	unsigned int stride;
	unsigned int most;
	char what[64];
};

void kdf_walk(struct kdf_walk *walk, const struct kdf_way *ways);

#endif /* KDAPL_KUNIT_FAULT_WAYS_H */
