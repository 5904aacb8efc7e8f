// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Delay our modules at points that follow from a seed, so that calls race in ways that they
 * rarely do by themselves. A point is a block of a module; see points.c. It is done in the
 * manner of probabilistic concurrency testing: time is divided into epochs, and in each of
 * them
 *
 * - one of so many points is chosen, by its place in its module, so the same seed chooses the
 *   same points of the same build;
 * - threads, by their names, and softirqs and interrupts have a high or a low priority: only
 *   the low ones are delayed, so that of two at the same point one overtakes the other;
 * - a chosen point delays one of 1 to 32 that pass it, until as much time has gone as its
 *   length, or the other CPUs have taken as many steps. Few delays: no CPU spends more than
 *   a share of the epoch in them.
 *
 * A delay spins, since nothing is known about what the module holds at the point.
 *
 * With the parameter "functions" only points in these functions, such as those that were changed,
 * are chosen, half of them, and delay one of 1 to 4 that pass: a window of a few instructions in
 * one function is met in seconds, which is met by chance among all points in hours.
 *
 * With the parameter "epoch" every epoch is that one, which replays it alone. The kernel's log
 * tells, as does a panic, which it was. debugfs has what was reached: for each module a
 * bitmap by the byte of its text, and one of pairs (hashed): points that a CPU passed while
 * another one stood in a delay at a chosen point.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/debugfs.h>
#include <linux/hash.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/panic_notifier.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <compat_probe.h>
#include "param.h"
#include "points.h"

#define TEXT_BITS	21			/* no module has more text than 2 MiB */
#define PAIR_BITS	20
#define SLOTS		64			/* chosen points of an epoch, at most */
#define ATOMIC_NS	(200 * NSEC_PER_USEC)	/* with interrupts off and the like */
#define SHARE		3			/* of an epoch for delays: a third */

KD_PARAM(seed, uint, 1, "what all follows from");
KD_PARAM(epoch, int, -1, "only this epoch, again and again; -1: all in turn");
KD_PARAM(epoch_ms, uint, 100, "milliseconds of an epoch");
KD_PARAM(one_in, uint, 64, "choose one of so many points");
KD_PARAM(longest_us, uint, 2000, "longest delay, in microseconds");

static char *functions = "";
module_param(functions, charp, 0444);
MODULE_PARM_DESC(functions, "choose points in these functions only, separated by commas");

static u32 chosen_below;	/* the choices that choose: one in so many */

/* struct delays_text - the text of a module of ours; @base is 0 unless it is loaded */
struct delays_text {
	const char *name;
	unsigned long base;
	unsigned long size;
	struct debugfs_blob_wrapper blob;
};

static struct delays_text texts[] = {
	{ "kdapl" }, { "kdapl_blk" }, { "kdapl_blk_tgt" }, { "kdapl_isert" },
	{ "kdapl_svcrdma" }, { "kdapl_test" },
};

static unsigned long reached[ARRAY_SIZE(texts)][BITS_TO_LONGS(BIT(TEXT_BITS))];

/* Of these, the ones in functions that were asked for. */
static unsigned long named[ARRAY_SIZE(texts)][BITS_TO_LONGS(BIT(TEXT_BITS))];

/* A point is a text's number, from 1, and the byte in it. */
#define POINT(nth, byte)	(((u32)(nth) + 1) << TEXT_BITS | (byte))

static DECLARE_BITMAP(pairs, BIT(PAIR_BITS));
static struct debugfs_blob_wrapper pairs_blob = { pairs, sizeof(pairs) };

/* struct delays_cpu - a CPU: the steps it took, and the point where it stands in a delay */
struct delays_cpu {
	unsigned long steps;
	u32 stands_at;
	u64 spent;		/* ns in delays, of this epoch */
};

static DEFINE_PER_CPU(struct delays_cpu, cpus);
static atomic_t standing;	/* how many CPUs are in a delay */

/* struct delays_slot - a chosen point of this epoch that was reached */
struct delays_slot {
	unsigned long pc;
	atomic_t passed;
	atomic_t delays;
};

static struct delays_slot slots[SLOTS];
static unsigned int now;	/* the number of the epoch */
static u64 now_key;		/* what the choices of it follow from */

static u64 mix(u64 x)
{
	x = (x ^ x >> 32) * GOLDEN_RATIO_64;
	x = (x ^ x >> 29) * GOLDEN_RATIO_64;
	return x ^ x >> 32;
}

/* ---- Coverage ------------------------------------------------------------ */

static u32 find_point(unsigned long pc)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(texts); i++)
		if (pc - READ_ONCE(texts[i].base) < READ_ONCE(texts[i].size))
			return POINT(i, pc - texts[i].base);
	return 0;
}

/* Return whether it is marked for the first time. */
static bool mark(unsigned long *map, u32 bit)
{
	return !test_bit(bit, map) && !test_and_set_bit(bit, map);
}

/* Is @pc in one of the functions that were asked for? Parts that the compiler has made count. */
static bool is_named(unsigned long pc)
{
	char symbol[KSYM_SYMBOL_LEN];
	const char *name = functions;
	size_t len, n;

	sprint_symbol_no_offset(symbol, pc);
	len = strcspn(symbol, ". ");
	for (; *name; name += n + !!name[n]) {
		n = strcspn(name, ",");
		if (n == len && !strncmp(name, symbol, n))
			return true;
	}
	return false;
}

/* A point is reached. May it be chosen? */
static bool note_point(unsigned long pc, u32 point)
{
	u32 nth = (point >> TEXT_BITS) - 1, byte = point & (BIT(TEXT_BITS) - 1);

	if (mark(reached[nth], byte) && *functions && is_named(pc))
		set_bit(byte, named[nth]);
	return !*functions || test_bit(byte, named[nth]);
}

/* Other CPUs stand in delays while this one passes @point. */
static void mark_pairs(u32 point)
{
	unsigned int cpu, me = smp_processor_id();
	u32 other;

	for_each_online_cpu(cpu) {
		other = cpu == me ? 0 : READ_ONCE(per_cpu(cpus.stands_at, cpu));
		if (other)
			mark(pairs, hash_64((u64)other << 32 | point, PAIR_BITS));
	}
}

/* ---- Delays -------------------------------------------------------------- */

static bool is_low(u64 key)
{
	const char *who = current->comm;
	unsigned int len = strnlen(who, TASK_COMM_LEN);

	if (in_hardirq())
		who = "hardirq";
	else if (in_serving_softirq())
		who = "softirq";
	else if (current->flags & PF_WQ_WORKER)
		who = "kworker";	/* its name follows from nothing */
	if (who != current->comm)
		len = strlen(who);
	while (len--)
		key = mix(key ^ who[len]);
	return key & 1;
}

/* Return the slot of a chosen point; NULL if another one has it. */
static struct delays_slot *slot_of(u64 choice, unsigned long pc)
{
	struct delays_slot *slot = &slots[choice >> 32 & (SLOTS - 1)];
	unsigned long old = cmpxchg(&slot->pc, 0, pc);

	return !old || old == pc ? slot : NULL;
}

static bool is_atomic(void)
{
	/* The hook has disabled preemption once. */
	return irqs_disabled() || in_interrupt() ||
	       (IS_ENABLED(CONFIG_PREEMPT_COUNT) && preempt_count() > 1);
}

static unsigned long steps_of_others(void)
{
	unsigned int cpu, me = smp_processor_id();
	unsigned long steps = 0;

	for_each_online_cpu(cpu)
		if (cpu != me)
			steps += READ_ONCE(per_cpu(cpus.steps, cpu));
	return steps;
}

static void stand(struct delays_cpu *me, u32 point, u64 choice)
{
	u64 limit = (u64)longest_us * NSEC_PER_USEC, begin = ktime_get_mono_fast_ns(), gone;
	unsigned long first = steps_of_others(), steps = ULONG_MAX;

	/* Half of the points wait for steps, from 1 to 512, and half for time. */
	if (choice >> 40 & 1)
		steps = 1UL << (choice >> 41 & 15) % 10;
	else
		limit >>= (choice >> 41 & 15) % 11;
	if (is_atomic())
		limit = min_t(u64, limit, ATOMIC_NS);
	WRITE_ONCE(me->stands_at, point);
	atomic_inc(&standing);
	do {
		cpu_relax();
		gone = ktime_get_mono_fast_ns() - begin;
	} while (gone < limit && steps_of_others() - first < steps);
	atomic_dec(&standing);
	WRITE_ONCE(me->stands_at, 0);
	me->spent += gone;
}

/* Delay at a chosen point. An interrupt of a CPU that stands in a delay has no further one. */
static void delay(struct delays_cpu *me, unsigned long pc, u32 point, u64 key, u64 choice)
{
	struct delays_slot *slot;

	if (me->stands_at || !is_low(key) ||
	    me->spent > (u64)epoch_ms * (NSEC_PER_MSEC / SHARE))
		return;
	slot = slot_of(choice, pc);
	if (!slot || atomic_inc_return(&slot->passed) &
	    ((1U << (choice >> 48) % (*functions ? 3 : 6)) - 1))
		return;
	atomic_inc(&slot->delays);
	stand(me, point, choice);
}

static void delays_hook(unsigned long pc)
{
	struct delays_cpu *me = this_cpu_ptr(&cpus);
	u32 point = find_point(pc);
	u64 key, choice;
	bool may;

	if (!point)
		return;
	WRITE_ONCE(me->steps, me->steps + 1);
	may = note_point(pc, point);
	if (atomic_read(&standing))
		mark_pairs(point);
	if (!may)
		return;
	key = READ_ONCE(now_key);
	choice = mix(key ^ point);
	if ((u32)choice < chosen_below)
		delay(me, pc, point, key, choice);
}

/* ---- Epochs -------------------------------------------------------------- */

#define LINE_LEN	512

/* Say what was done in this epoch. Return whether there was anything. */
static bool describe_epoch(char *line)
{
	unsigned int i, points = 0, delays = 0;
	int n, did;

	n = scnprintf(line, LINE_LEN, "seed %u epoch %u", seed, now);
	for (i = 0; i < SLOTS; i++) {
		did = atomic_read(&slots[i].delays);
		if (!slots[i].pc || !did)
			continue;
		delays += did;
		if (points++ < 6)
			n += scnprintf(line + n, LINE_LEN - n, ", %d at %pS", did,
				       (void *)slots[i].pc);
	}
	scnprintf(line + n, LINE_LEN - n, "; %u delays at %u points", delays, points);
	return points;
}

static void begin_epoch(unsigned int nth)
{
	unsigned int cpu;

	now = nth;
	memset(slots, 0, sizeof(slots));
	for_each_possible_cpu(cpu)
		per_cpu(cpus.spent, cpu) = 0;
	WRITE_ONCE(now_key, mix((u64)seed << 32 | nth));
}

static void next_epoch(struct work_struct *work)
{
	char line[LINE_LEN];

	if (describe_epoch(line))
		pr_info("kdapl_delays: %s\n", line);
	begin_epoch(epoch < 0 ? now + 1 : epoch);
	schedule_delayed_work(to_delayed_work(work), msecs_to_jiffies(epoch_ms));
}

static DECLARE_DELAYED_WORK(epoch_work, next_epoch);

static int tell_panic(struct notifier_block *nb, unsigned long event, void *data)
{
	static char line[LINE_LEN];
	unsigned int cpu, i;
	u32 point;

	for_each_online_cpu(cpu) {
		point = per_cpu(cpus.stands_at, cpu);
		i = (point >> TEXT_BITS) - 1;
		if (point)
			pr_emerg("kdapl_delays: CPU %u stands at %pS\n", cpu,
				 (void *)(texts[i].base + (point & (BIT(TEXT_BITS) - 1))));
	}
	describe_epoch(line);
	pr_emerg("kdapl_delays: %s\n", line);
	return NOTIFY_DONE;
}

/* The one of arch/um, which comes next to last, does not return. */
static struct notifier_block panic_block = { .notifier_call = tell_panic, .priority = INT_MAX };

/* ---- Modules ------------------------------------------------------------- */

static void find_text(struct module *mod, unsigned long *base, unsigned long *size)
{
#ifdef KDAPL_HAVE_MODULE_MEM
	*base = (unsigned long)mod->mem[MOD_TEXT].base;
	*size = mod->mem[MOD_TEXT].size;
#else
	*base = (unsigned long)mod->core_layout.base;
	*size = mod->core_layout.text_size;
#endif
}

static int watch_module(struct notifier_block *nb, unsigned long event, void *data)
{
	struct module *mod = data;
	unsigned long base, size;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strcmp(texts[i].name, mod->name))
			continue;
		if (event == MODULE_STATE_GOING)
			WRITE_ONCE(texts[i].size, 0);
		if (event != MODULE_STATE_COMING)
			continue;
		find_text(mod, &base, &size);
		WRITE_ONCE(texts[i].base, base);
		WRITE_ONCE(texts[i].size, min(size, BIT(TEXT_BITS)));
	}
	return NOTIFY_DONE;
}

static struct notifier_block module_block = { .notifier_call = watch_module };

static struct dentry *dir;

/* It is loaded before the modules that it delays. */
static int __init delays_init(void)
{
	unsigned int i;
	int err;

	if (!one_in || !epoch_ms || epoch_ms > 60000 || longest_us > 100000)
		return -EINVAL;
	chosen_below = U32_MAX / (*functions ? 2 : one_in);
	begin_epoch(max(epoch, 0));
	err = register_module_notifier(&module_block);
	if (err)
		return err;
	err = kdapl_points_set(delays_hook);
	if (err) {
		unregister_module_notifier(&module_block);
		return err;
	}
	atomic_notifier_chain_register(&panic_notifier_list, &panic_block);
	dir = debugfs_create_dir("kdapl_delays", NULL);
	debugfs_create_blob("pairs", 0400, dir, &pairs_blob);
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		texts[i].blob.data = reached[i];
		texts[i].blob.size = sizeof(reached[i]);
		debugfs_create_blob(texts[i].name, 0400, dir, &texts[i].blob);
	}
	schedule_delayed_work(&epoch_work, msecs_to_jiffies(epoch_ms));
	return 0;
}
module_init(delays_init);

static void __exit delays_exit(void)
{
	cancel_delayed_work_sync(&epoch_work);
	kdapl_points_clear();
	debugfs_remove_recursive(dir);
	atomic_notifier_chain_unregister(&panic_notifier_list, &panic_block);
	unregister_module_notifier(&module_block);
}
module_exit(delays_exit);

MODULE_DESCRIPTION("Delay the modules of kDAPL at points chosen from a seed");
MODULE_LICENSE("Dual BSD/GPL");
