"""Aligns pairs of reads in batches, by processes that Ray starts:

    python batches.py --pairs 200000 --workers 2

A task is a batch of pairs. What travels is the sequences, and the scheme by name. A worker compiles the kernels of the scheme once, or finds
their code in the cache on disk. The batches of a worker that dies go to another one: Ray tries a task again.
"""

import argparse
import random
import time

import ray

import nyala.align

SCHEME = dict(ends="global", gaps=(4, 2), match=2, mismatch=-4)


@ray.remote(max_retries=3)
def scores(pairs):
    """The scores of a batch of pairs."""
    a, b = zip(*pairs)
    return list(nyala.align.scores(a, b, **SCHEME))


def make_pairs(n, length=150, seed=1):
    """Reads, and what they may have come from: some letters differ."""
    chance = random.Random(seed)
    pairs = []
    for _ in range(n):
        a = bytes(chance.choices(b"ACGT", k=length))
        b = bytes(letter if chance.random() < 0.95 else chance.choice(b"ACGT") for letter in a)
        pairs.append((a, b))
    return pairs


def start(workers):
    """Processes on this machine, each with one thread."""
    ray.init(
        num_cpus=workers,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"NYALA_NUM_THREADS": "1"}},
    )


def scores_of(pairs, batch, task=scores):
    """The scores of all pairs, in batches of this size."""
    batches = [task.remote(pairs[i : i + batch]) for i in range(0, len(pairs), batch)]
    return [score for of_batch in ray.get(batches) for score in of_batch]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20000)
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    pairs = make_pairs(given.pairs)
    start(given.workers)
    # Workers start, and have the code, before the time counts.
    scores_of(pairs[: 8 * given.workers], 8)
    begin = time.perf_counter()
    all_scores = scores_of(pairs, given.batch)
    print(f"{given.workers} workers: {time.perf_counter() - begin:.2f} s, {len(all_scores)} scores, sum {sum(all_scores)}")


if __name__ == "__main__":
    main()
