// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What it costs to map a scatterlist for the device and to unmap it, as a consumer with
 * memory of others does for each transfer: kdat_sg_map() beside the DMA mapping of ib_core
 * and a list of segments made of it.
 */
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <dat/kdat_linux.h>
#include "pair.h"

#define MAP_PAGES	256	/* of a large transfer, 1 MiB */
#define MAP_ONES	64	/* small ones in a timed loop */

struct bench_map {
	struct scatterlist sgl[MAP_PAGES];
	DAT_LMR_TRIPLET iov[MAP_PAGES];
	struct ib_sge sge[MAP_PAGES];
};

int bench_dat_map(struct bench_pair *pair, struct bench_map *map, int n)
{
	struct dat_pair *dp = container_of(pair, struct dat_pair, pair);
	KDAT_SG_HANDLE sg;
	DAT_COUNT segments;
	int err;

	err = dat_errno("kdat_sg_map", kdat_sg_map(dp->ia, dp->pz, map->sgl, n, DMA_TO_DEVICE,
						   MAP_PAGES, map->iov, &segments, &sg));
	return err ?: dat_errno("kdat_sg_unmap", kdat_sg_unmap(sg));
}

int bench_raw_map(struct bench_pair *pair, struct bench_map *map, int n)
{
	struct raw_pair *rp = container_of(pair, struct raw_pair, pair);
	int i, mapped = ib_dma_map_sg(rp->dev, map->sgl, n, DMA_TO_DEVICE);
	struct scatterlist *sg;

	if (!mapped)
		return -ENOMEM;
	for_each_sg(map->sgl, sg, mapped, i)
		map->sge[i] = (struct ib_sge) {
			.addr = sg_dma_address(sg),
			.length = sg_dma_len(sg),
			.lkey = rp->pd->local_dma_lkey,
		};
	/* The list of segments is for somebody. */
	barrier_data(map->sge);
	ib_dma_unmap_sg(rp->dev, map->sgl, n, DMA_TO_DEVICE);
	return 0;
}

/* Map @n pages @times times, and note what a page takes. */
static int bench_map_once(struct bench_pair *pair, const struct bench_to *to,
			  struct bench_map *map, enum bench_figure figure, int n, int times)
{
	u64 start;
	int i, err = 0;

	start = bench_clock();
	for (i = 0; i < times && !err; i++)
		err = pair->map(pair, map, n);
	if (!err)
		bench_note(to->res, figure, to->series, bench_clock() - start, n * times);
	return err;
}

static struct bench_map *bench_map_make(void)
{
	struct bench_map *map = kvzalloc(sizeof(*map), GFP_KERNEL);
	struct page *page;
	int i;

	if (!map)
		return NULL;
	sg_init_table(map->sgl, MAP_PAGES);
	for (i = 0; i < MAP_PAGES; i++) {
		page = alloc_page(GFP_KERNEL);
		if (!page)
			break;
		sg_set_page(&map->sgl[i], page, PAGE_SIZE, 0);
	}
	return map;
}

static void bench_map_free(struct bench_map *map)
{
	int i;

	for (i = 0; i < MAP_PAGES && sg_page(&map->sgl[i]); i++)
		__free_page(sg_page(&map->sgl[i]));
	kvfree(map);
}

int bench_map(struct bench_pair *pair, const struct bench_to *to, int times)
{
	struct bench_map *map = bench_map_make();
	int i, err = 0;

	if (!map)
		return -ENOMEM;
	if (!sg_page(&map->sgl[MAP_PAGES - 1]))
		err = -ENOMEM;
	for (i = 0; i < times && !err; i++)
		err = bench_map_once(pair, to, map, BENCH_MAP_PAGE, 1, MAP_ONES) ?:
		      bench_map_once(pair, to, map, BENCH_MAP_PAGES, MAP_PAGES, 1);
	bench_map_free(map);
	return err;
}
