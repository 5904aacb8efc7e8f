// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * race_test.ko: memory. There is some that stays registered, and some that is given back now
 * and then. The latter is filled with a pattern then, which must still be there when it is used
 * again.
 */
#include "race.h"

static bool page_is_intact(const struct race_page *page)
{
	return !page->pattern || kd_has_pattern(page->va, PAGE_SIZE, page->pattern);
}

/* Take the page that was given back first. */
u8 *race_take_page(struct race_world *w)
{
	struct race_page *page = NULL;
	unsigned long flags;
	unsigned int i;
	bool intact;

	spin_lock_irqsave(&w->lock, flags);
	for (i = 0; i < RACE_PAGES; i++)
		if (w->page[i].pattern && (!page || w->page[i].pattern < page->pattern))
			page = &w->page[i];
	if (!page) {
		spin_unlock_irqrestore(&w->lock, flags);
		return NULL;
	}
	intact = page_is_intact(page);
	page->pattern = 0;
	spin_unlock_irqrestore(&w->lock, flags);
	if (!intact)
		race_fail(w, "somebody wrote to memory that was given back");
	return page->va;
}

void race_give_back(struct race_world *w, u8 *va)
{
	struct race_page *page = w->page;
	unsigned long flags;
	u32 pattern;

	while (page->va != va)
		page++;
	spin_lock_irqsave(&w->lock, flags);
	pattern = ++w->next_page;
	spin_unlock_irqrestore(&w->lock, flags);
	kd_fill(va, PAGE_SIZE, pattern);
	spin_lock_irqsave(&w->lock, flags);
	page->pattern = pattern;
	spin_unlock_irqrestore(&w->lock, flags);
	atomic_inc(&w->stat[N_GIVEN_BACK]);
}

/* Nothing runs. */
void race_check_pages(struct race_world *w)
{
	unsigned int i;

	for (i = 0; i < RACE_PAGES; i++)
		if (!page_is_intact(&w->page[i]))
			race_fail(w, "somebody wrote to memory that was given back");
}
