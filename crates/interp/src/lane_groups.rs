//! Lanes: iterations that wait for each other, of a `vectorize` loop or of a block of work items. A lane needs no stack
//! of its own. It consists of the continuation at which it goes on, and its arguments.

use crate::code::POISON;
use crate::heap::Closure;
use nyala_base::Span;
use nyala_ir::lanes::SUBGROUP;
use nyala_ir::{LaneOp, Scope, WorkItem};
use std::ops::Range;

/// A lane that waits at an operation across lanes.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub op: LaneOp,
    pub scope: Scope,
    pub args: Vec<u64>,
    pub ret: Closure,
    /// The place in the code, and those of the calls that led there; at most the innermost ones.
    pub path: Vec<u32>,
}

#[derive(Clone, Debug)]
pub enum State {
    Ready(Closure, Vec<u64>),
    Running,
    Waiting(Waiting),
    Ended,
}

pub struct Lane {
    pub state: State,
    /// Its number in the block of work items.
    pub item: u64,
    /// The number of its requests for shared memory so far.
    pub n_shared: usize,
}

/// The blocks of a kernel, and which of them runs. Arrays are in the order x, y, z.
pub struct Grid {
    pub block_size: [u32; 3],
    pub blocks: [u32; 3],
    pub block: [u32; 3],
}

impl Grid {
    /// A grid of `items` work items, in as few blocks of size `block_size` as hold them all. If some block size is not
    /// positive, the error is the number of work items on that axis.
    pub fn new(items: [i32; 3], block_size: [i32; 3]) -> Result<Grid, i32> {
        if let Some(axis) = (0..3).find(|&axis| block_size[axis] <= 0) {
            return Err(items[axis]);
        }
        let block_size = block_size.map(|n| n as u32);
        let blocks = [0, 1, 2].map(|axis| (items[axis].max(0) as u32).div_ceil(block_size[axis]));
        Ok(Grid { block_size, blocks, block: [0; 3] })
    }

    /// The number of work items in a block.
    pub fn n_items(&self) -> u64 {
        self.block_size.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul)
    }

    /// Advances to the next block, x first. Returns whether there is one.
    pub fn advance(&mut self) -> bool {
        for axis in 0..3 {
            self.block[axis] += 1;
            if self.block[axis] < self.blocks[axis] {
                return true;
            }
            self.block[axis] = 0;
        }
        false
    }

    /// The number `what` of a work item of the current block, on one axis.
    pub fn number(&self, what: WorkItem, axis: usize, item: u64) -> u32 {
        match what {
            WorkItem::Thread => {
                let before: u64 = self.block_size[..axis].iter().map(|&n| u64::from(n)).product();
                (item / before % u64::from(self.block_size[axis])) as u32
            }
            WorkItem::Block => self.block[axis],
            WorkItem::BlockSize => self.block_size[axis],
            WorkItem::Blocks => self.blocks[axis],
        }
    }
}

/// Lanes that run together.
pub struct Group {
    pub body: Closure,
    /// The continuation after all of them.
    pub next: Closure,
    /// The first iteration that has not been started. `hi` is the end of the loop.
    pub at: i64,
    pub hi: i64,
    pub width: u64,
    /// The lanes that have been started. `current` is the one that runs; those after it may be ready.
    pub lanes: Vec<Lane>,
    pub current: usize,
    /// The grid, if they are the work items of a block.
    pub grid: Option<Grid>,
    /// Whether code of a device runs around them.
    pub was_on_device: bool,
    /// They are iterations of a parallel loop, one after another.
    pub is_parallel: bool,
    /// Address and size of each piece of shared memory, in the order of the requests.
    pub shared: Vec<(usize, usize)>,
    pub item: u64,
    /// The place where the group was started.
    pub span: Span,
}

impl Group {
    /// Whether they are the lanes of vectors.
    pub fn is_vector(&self) -> bool {
        !self.is_parallel && self.grid.is_none() && self.width > 1
    }

    /// The words that may refer to records.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        let of_lanes = self.lanes.iter().flat_map(|lane| match &lane.state {
            State::Ready(k, words) => [&[k.0], &words[..]].concat(),
            State::Waiting(w) => [&[w.ret.0], &w.args[..]].concat(),
            State::Running | State::Ended => Vec::new(),
        });
        of_lanes.chain([self.body.0, self.next.0])
    }

    /// The next lane that can run.
    pub fn take_ready(&mut self) -> Option<(Closure, Vec<u64>)> {
        for i in self.current..self.lanes.len() {
            if let State::Ready(..) = self.lanes[i].state {
                self.current = i;
                let state = std::mem::replace(&mut self.lanes[i].state, State::Running);
                if let State::Ready(k, words) = state {
                    return Some((k, words));
                }
            }
        }
        None
    }

    /// The number of a lane in its subgroup: the work items of a block are several subgroups.
    pub fn in_subgroup(&self, lane: usize) -> usize {
        if self.grid.is_some() { lane % SUBGROUP as usize } else { lane }
    }

    /// The number of lanes of a subgroup.
    pub fn subgroup_width(&self) -> u64 {
        if self.grid.is_some() { SUBGROUP.into() } else { self.width }
    }

    /// Lets waiting lanes go on with the results of their operation: those of subgroups that wait for themselves only,
    /// or else all. If two of them wait at different operations, or reached one by different calls, returns an error
    /// with their numbers and the places where their paths differ.
    pub fn meet(&mut self) -> Result<(), [(usize, u32); 2]> {
        let n = self.lanes.len();
        let mut met = false;
        if self.grid.is_some() {
            for first in (0..n).step_by(SUBGROUP as usize) {
                let lanes = first..n.min(first + SUBGROUP as usize);
                let waits = lanes.clone().find_map(|i| match &self.lanes[i].state {
                    State::Waiting(w) => Some(w.scope),
                    _ => None,
                });
                if waits == Some(Scope::Subgroup) {
                    self.meet_in(lanes, SUBGROUP.into())?;
                    met = true;
                }
            }
        }
        if met { Ok(()) } else { self.meet_in(0..n, self.width) }
    }

    /// Lets the waiting ones of these lanes go on; the numbers of lanes begin with the first of them.
    fn meet_in(&mut self, lanes: Range<usize>, width: u64) -> Result<(), [(usize, u32); 2]> {
        let start = lanes.start;
        let waits: Vec<(usize, Waiting)> = lanes
            .filter_map(|i| match &self.lanes[i].state {
                State::Waiting(w) => Some((i - start, w.clone())),
                _ => None,
            })
            .collect();
        if let Some((first, w)) = waits.first()
            && let Some((other, o)) = waits.iter().find(|(_, o)| o.path != w.path)
        {
            let mut ways = w.path.iter().rev().zip(o.path.iter().rev());
            let (a, b) = ways.clone().find(|(a, b)| a != b).or(ways.next_back()).unwrap_or((&0, &0));
            return Err([(start + first, *a), (start + other, *b)]);
        }
        for ((i, w), result) in waits.iter().zip(results(&waits, width)) {
            self.lanes[start + i].state = State::Ready(w.ret, result.into_iter().collect());
        }
        self.current = 0;
        Ok(())
    }
}

/// The result of an operation for a lane that is alone.
pub fn result_of_single_lane(waiting: Waiting) -> Option<u64> {
    results(&[(0, waiting)], 1).pop().flatten()
}

/// The results of an operation for each of the waiting lanes; `None` after a barrier.
fn results(waits: &[(usize, Waiting)], width: u64) -> Vec<Option<u64>> {
    let Some((_, first)) = waits.first() else { return Vec::new() };
    let holds = |w: &Waiting, i: usize| w.args.get(i).is_some_and(|&a| a != 0);
    let for_all = |result: u64| vec![Some(result); waits.len()];
    let value = |lane: usize| {
        let found = waits.binary_search_by_key(&lane, |w| w.0).ok();
        found.and_then(|at| waits[at].1.args.first().copied()).unwrap_or(POISON)
    };
    match first.op {
        LaneOp::Any => for_all(waits.iter().any(|(_, w)| holds(w, 0)).into()),
        LaneOp::All => for_all(waits.iter().all(|(_, w)| holds(w, 0)).into()),
        LaneOp::Count => for_all(waits.iter().filter(|(_, w)| holds(w, 0)).count() as u64),
        LaneOp::Ballot => {
            for_all(waits.iter().filter(|(i, w)| *i < 64 && holds(w, 0)).fold(0, |bits, (i, _)| bits | 1u64 << i))
        }
        LaneOp::Get => {
            let of = |w: &Waiting| w.args.get(1).map_or(0, |&i| (i as i64).rem_euclid(width.max(1) as i64));
            waits.iter().map(|(_, w)| Some(value(of(w) as usize))).collect()
        }
        LaneOp::Compact => {
            let chosen: Vec<usize> = waits.iter().filter(|(_, w)| holds(w, 1)).map(|w| w.0).collect();
            waits.iter().map(|(i, _)| Some(chosen.get(*i).map_or(POISON, |&lane| value(lane)))).collect()
        }
        _ => vec![None; waits.len()],
    }
}
