//! Lanes: iterations that wait for each other, of a `vectorize` or a block of work items. A lane needs no stack of its
//! own: it is the continuation that it goes on at, and what that gets.

use crate::code::POISON;
use crate::heap::Closure;
use nyala_base::Span;
use nyala_ir::{LaneOp, WorkItem};

/// A lane that has come to an operation.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub op: LaneOp,
    pub args: Vec<u64>,
    pub ret: Closure,
    /// The place in the code, those of the calls that led there; where there are very many, of the last ones.
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
    /// Its number in the block.
    pub item: u64,
    /// How many pieces of common memory it has asked for.
    pub n_shared: usize,
}

/// The blocks of a kernel, and which of them runs; x, y, z.
pub struct Grid {
    pub block_size: [u32; 3],
    pub blocks: [u32; 3],
    pub block: [u32; 3],
}

impl Grid {
    /// A grid of so many work items, in as many blocks of so many as hold them all. `Err`: how many there were to be in a
    /// block that has none.
    pub fn new(items: [i32; 3], block_size: [i32; 3]) -> Result<Grid, i32> {
        if let Some(axis) = (0..3).find(|&axis| block_size[axis] <= 0) {
            return Err(items[axis]);
        }
        let block_size = block_size.map(|n| n as u32);
        let blocks = [0, 1, 2].map(|axis| (items[axis].max(0) as u32).div_ceil(block_size[axis]));
        Ok(Grid { block_size, blocks, block: [0; 3] })
    }

    /// How many work items a block has.
    pub fn n_items(&self) -> u64 {
        self.block_size.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul)
    }

    /// Goes on to the next block, x first; whether there is one.
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

    /// A number of a work item of the block.
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
    /// Where to go on after all of them.
    pub next: Closure,
    /// The first iteration that is to come, and the end.
    pub at: i64,
    pub hi: i64,
    pub width: u64,
    /// Those that have been started, and which of them runs; the ones behind it may be ready.
    pub lanes: Vec<Lane>,
    pub current: usize,
    /// The grid, if they are the work items of a block.
    pub grid: Option<Grid>,
    /// Address and size of common memory, in the order in which the lanes ask for it.
    pub shared: Vec<(usize, usize)>,
    pub item: u64,
    /// Where it was begun.
    pub span: Span,
}

impl Group {
    /// What may refer to records.
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

    /// Lets all lanes that wait go on with what their operation gives; two that wait at different ones, or came to it by
    /// different calls, if they do, by their numbers and the places where their ways differ.
    pub fn meet(&mut self) -> Result<(), [(usize, u32); 2]> {
        let waits: Vec<(usize, Waiting)> = self
            .lanes
            .iter()
            .enumerate()
            .filter_map(|(i, lane)| match &lane.state {
                State::Waiting(w) => Some((i, w.clone())),
                _ => None,
            })
            .collect();
        if let Some((first, w)) = waits.first()
            && let Some((other, o)) = waits.iter().find(|(_, o)| o.path != w.path)
        {
            let mut ways = w.path.iter().rev().zip(o.path.iter().rev());
            let (a, b) = ways.clone().find(|(a, b)| a != b).or(ways.next_back()).unwrap_or((&0, &0));
            return Err([(*first, *a), (*other, *b)]);
        }
        for ((i, w), result) in waits.iter().zip(results(&waits, self.width)) {
            self.lanes[*i].state = State::Ready(w.ret, result.into_iter().collect());
        }
        self.current = 0;
        Ok(())
    }
}

/// What an operation gives to a lane without others.
pub fn result_of_single_lane(waiting: Waiting) -> Option<u64> {
    results(&[(0, waiting)], 1).pop().flatten()
}

/// What an operation gives to each of the lanes that wait at it; nothing after a barrier.
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
