// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Edges that an input reaches in the modules of a target: pairs of blocks that a task, or an
 * interrupt, has run one after the other. The modules are those that
 * "scripts/kernel/build-modules -p" builds; without it there are no edges.
 *
 * All contexts share the maps, as a target works in several at once; what another input has
 * left to do is counted as this one's, so fuzz_search() believes what it sees twice.
 */
#include <linux/hash.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/string.h>
#include "../points/points.h"
#include "fuzz.h"

#define BLOCK_BITS	15
#define BLOCKS		BIT(BLOCK_BITS)

/*
 * struct fuzz_block - a block that was reached
 * @pc: where it calls __sanitizer_cov_trace_pc(); 0 if the entry is free
 * @module: index into the modules of the target plus 2; 1 if it is none; 0 if not known yet
 */
struct fuzz_block {
	unsigned long pc;
	u8 module;
};

static struct fuzz_block blocks[BLOCKS];
static u8 edges[FUZZ_EDGES];		/* that this input has reached */
static u8 edge_module[FUZZ_EDGES];	/* of edges ever reached, as in struct fuzz_block */
static const char * const *fuzz_modules;
static bool started;

/* Where each CPU has been last. */
struct fuzz_last {
	void *context;
	u32 block;
};

static DEFINE_PER_CPU(struct fuzz_last, fuzz_last);

/* Return which of the target's modules @pc is in. */
static u8 fuzz_module_of(unsigned long pc)
{
	char symbol[KSYM_SYMBOL_LEN], *module;
	unsigned int i;

	snprintf(symbol, sizeof(symbol), "%ps", (void *)pc);
	module = strchr(symbol, '[');
	if (!module)
		return 1;
	module++;
	module[strcspn(module, " ]")] = '\0';
	for (i = 0; fuzz_modules[i]; i++)
		if (!strcmp(fuzz_modules[i], module))
			return i + 2;
	return 1;
}

/* Return the entry of @pc, or NULL if all are in use. */
static struct fuzz_block *fuzz_block(unsigned long pc)
{
	u32 i, at = hash_long(pc, BLOCK_BITS);
	struct fuzz_block *block;
	unsigned long was;

	for (i = 0; i < BLOCKS; i++) {
		block = &blocks[(at + i) % BLOCKS];
		was = READ_ONCE(block->pc) ?: cmpxchg(&block->pc, 0, pc);
		if (!was || was == pc)
			return block;
	}
	return NULL;
}

/* Hook of kdapl_points.ko. Context: any. */
static void fuzz_reached(unsigned long pc)
{
	void *context = (void *)((unsigned long)current +
				 (in_serving_softirq() ? 1 : 0) + (in_hardirq() ? 2 : 0));
	struct fuzz_last *last = this_cpu_ptr(&fuzz_last);
	struct fuzz_block *block = fuzz_block(pc);
	u32 edge;

	if (!block)
		return;
	if (!block->module)
		WRITE_ONCE(block->module, fuzz_module_of(pc));
	if (block->module == 1)
		return;
	edge = last->context == context ? last->block : 0;
	last->context = context;
	last->block = hash_32(block - blocks, 16);
	edge = (edge >> 1 ^ last->block) % FUZZ_EDGES;
	WRITE_ONCE(edges[edge], 1);
	edge_module[edge] = block->module;
}

/* Forget what the input before has reached. */
void fuzz_cover_clear(void)
{
	memset(edges, 0, sizeof(edges));
}

bool fuzz_cover_hit(unsigned int signal)
{
	return READ_ONCE(edges[signal]);
}

/* Begin. Return -ENOENT if the modules do not say where they are. */
int fuzz_cover_start(const char * const *modules)
{
	typeof(kdapl_points_set) *set = symbol_get(kdapl_points_set);
	int err;

	if (!set)
		return -ENOENT;
	fuzz_modules = modules;
	memset(blocks, 0, sizeof(blocks));
	memset(edge_module, 0, sizeof(edge_module));
	fuzz_cover_clear();
	err = set(fuzz_reached);
	if (err)
		symbol_put(kdapl_points_set);
	started = !err;
	return err;
}

void fuzz_cover_stop(void)
{
	typeof(kdapl_points_clear) *clear;

	if (!started)
		return;
	clear = symbol_get(kdapl_points_clear);
	clear();
	symbol_put(kdapl_points_clear);
	symbol_put(kdapl_points_set);
	started = false;
}

/* Tell what was reached so far. */
void fuzz_cover_tell(const char *target, const char *when)
{
	unsigned int m, i, reached_blocks, reached_edges;

	for (m = 0; started && fuzz_modules[m]; m++) {
		reached_blocks = 0;
		reached_edges = 0;
		for (i = 0; i < BLOCKS; i++)
			reached_blocks += blocks[i].module == m + 2;
		for (i = 0; i < FUZZ_EDGES; i++)
			reached_edges += edge_module[i] == m + 2;
		pr_info("fuzz %s: %s: %s: %u blocks, %u edges\n", target, when,
			fuzz_modules[m], reached_blocks, reached_edges);
	}
}
