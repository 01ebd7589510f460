//! Decides which lane runs, and when lanes meet. Separate from the loop, which only comes here when a lane begins,
//! waits or ends.

use super::*;
use crate::diagnostics::{broken_promise, diverged_lanes, division_by_zero};
use crate::externals::LANE_END;
use crate::lane_groups::{Grid, Lane, Waiting, result_of_single_lane};
use nyala_base::diagnostics::jump_out_of_parallel;
use nyala_ir::lanes::{IN_KERNEL, is_of_cpu};
use nyala_ir::{LaneOp, Scope, WorkItem};

/// Limit on the lanes that run together.
const MAX_LANES: u64 = 1 << 20;
/// Limit on the calls by which waiting lanes are told apart.
const MAX_PATH: usize = 64;

impl Machine<'_> {
    /// Begins a loop of lanes. `self.words` are the number of lanes that run together, the alignment that the caller
    /// promises for the bounds, the lower and the upper bound, the body, and the continuation.
    pub(super) fn begin_lanes(&mut self) -> Result<Closure> {
        let [n, align, at, hi, body, next] = self.words[..] else { return Err(bug("lanes of other arguments")) };
        if [n, align, at, hi].contains(&POISON) {
            return Err(eval::uninitialized());
        }
        let n = (n as i64).max(1);
        let (from, to, align) = (i128::from(at as i64), i128::from(hi as i64), i128::from(align as i64));
        let divides = |d: i128, x: i128| x % d == 0;
        if align != 0 && !(divides(align, from) && divides(align, to) && divides(n.into(), to - from)) {
            return Err(broken_promise::error(n, align as i64, from as i64, to as i64).into());
        }
        self.begin_group([Closure(body), Closure(next)], at as i64..hi as i64, n as u64, None, false)
    }

    /// Begins a parallel loop. `self.words` are the number of threads, the bounds, the body, and the continuation.
    pub(super) fn begin_parallel(&mut self) -> Result<Closure> {
        let [n, at, hi, body, next] = self.words[..] else { return Err(bug("a parallel loop of other arguments")) };
        if [n, at, hi].contains(&POISON) {
            return Err(eval::uninitialized());
        }
        // One thread runs the iterations in order.
        if n == 1 {
            self.words = vec![at, hi, next];
            return Ok(Closure(body));
        }
        self.l.races.begin_launch(false);
        self.begin_group([Closure(body), Closure(next)], at as i64..hi as i64, 1, None, true)
    }

    /// Begins a kernel. `self.words` are platform, device, grid and block sizes, the body, and the continuation.
    pub(super) fn begin_kernel(&mut self) -> Result<Closure> {
        let [platform, _, ref numbers @ .., body, next] = self.words[..] else {
            return Err(bug("a launch of no body"));
        };
        let [gx, gy, gz, bx, by, bz] = *numbers else { return Err(bug("a launch of other numbers")) };
        if numbers.contains(&POISON) {
            return Err(eval::uninitialized());
        }
        let grid = Grid::new([gx, gy, gz].map(|n| n as i32), [bx, by, bz].map(|n| n as i32))
            .map_err(|items| division_by_zero::error(&items.to_string(), false))?;
        if grid.blocks.contains(&0) {
            self.words.clear();
            return Ok(Closure(next));
        }
        let n = grid.n_items();
        let bounds = 0..n.min(i64::MAX as u64) as i64;
        let first = self.begin_group([Closure(body), Closure(next)], bounds, n, Some(grid), false)?;
        // The group has noted what was so before.
        self.l.memory.on_device |= !is_of_cpu(platform as u32);
        Ok(first)
    }

    fn begin_group(
        &mut self,
        [body, next]: [Closure; 2],
        bounds: std::ops::Range<i64>,
        width: u64,
        grid: Option<Grid>,
        is_parallel: bool,
    ) -> Result<Closure> {
        let item = self.groups.last().map_or(0, |g| g.lanes[g.current].item);
        self.groups.push(Group {
            body,
            next,
            at: bounds.start,
            hi: bounds.end,
            width,
            lanes: Vec::new(),
            current: 0,
            grid,
            was_on_device: self.l.memory.on_device,
            is_parallel,
            shared: Vec::new(),
            item,
            span: self.code.spans.get(self.pc.saturating_sub(1)).copied().unwrap_or(Span::NONE),
        });
        if self.groups.last().is_some_and(Group::is_vector) {
            self.l.races.begin_launch(true);
        }
        self.next_lane()
    }

    /// A number of the current work item. Outside of a kernel there is only one.
    pub(super) fn work_item(&self, what: u64, axis: u64) -> Result<u64> {
        if what == POISON || axis == POISON {
            return Err(eval::uninitialized());
        }
        if what == IN_KERNEL {
            return Ok(self.groups.iter().any(|g| g.grid.is_some()).into());
        }
        let Some(&what) = WorkItem::ALL.get(what as usize) else { return Err(bug("no number of work items")) };
        let grid = self.groups.iter().rev().find_map(|g| g.grid.as_ref());
        Ok(match (grid, self.groups.last()) {
            (Some(grid), Some(group)) if axis < 3 => {
                grid.number(what, axis as usize, group.lanes[group.current].item).into()
            }
            _ => what.of_one() as u64,
        })
    }

    /// Ends the current lane, which has called the end `closure`. If that is the end of an outer lane, a continuation
    /// from around the body was called.
    pub(super) fn end_lane(&mut self, closure: Closure) -> Result<Closure> {
        if !closure.has_number(self.groups.len()) {
            let (launch, in_lanes) = self.groups.last().map_or((Span::NONE, true), |g| (g.span, !g.is_parallel));
            return Err(jump_out_of_parallel::by_call(Span::NONE, launch, in_lanes).into());
        }
        self.set_lane(State::Ended);
        self.next_lane()
    }

    /// Faults if lanes are running: they were left before their end.
    pub(super) fn check_no_lanes(&self) -> Result<()> {
        match self.groups.last() {
            Some(group) => Err(jump_out_of_parallel::left(group.span, !group.is_parallel).into()),
            None => Ok(()),
        }
    }

    pub(super) fn set_lane(&mut self, state: State) {
        if let Some(group) = self.groups.last_mut() {
            group.lanes[group.current].state = state;
        }
    }

    /// Goes on with a lane that can run, or after the loop if all have ended.
    pub(super) fn next_lane(&mut self) -> Result<Closure> {
        loop {
            self.step()?;
            let end = Closure::numbered(LANE_END, self.groups.len());
            let Some(group) = self.groups.last_mut() else { return Err(bug("no lanes")) };
            if let Some((k, words)) = group.take_ready() {
                if group.is_vector() {
                    self.l.races.begin_iteration(group.at - (group.lanes.len() - group.current) as i64);
                }
                self.words = words;
                return Ok(k);
            }
            if group.lanes.iter().any(|lane| matches!(lane.state, State::Waiting(_))) {
                let spans = &self.code.spans;
                let span = |pc: u32| spans.get((pc as usize).saturating_sub(1)).copied().unwrap_or(Span::NONE);
                group.meet().map_err(|[a, b]| diverged_lanes::error(a.0, span(a.1), b.0, span(b.1)))?;
                if group.is_vector() {
                    self.l.races.meet();
                }
                continue;
            }
            for (address, _) in std::mem::take(&mut group.shared) {
                self.l.memory.free(address).map_err(memory_fault)?;
            }
            if group.at >= group.hi && group.grid.as_mut().is_some_and(Grid::advance) {
                group.at = 0;
            }
            let n = group.width.min(group.hi.abs_diff(group.at));
            if group.at >= group.hi {
                let next = group.next;
                if group.is_parallel || group.is_vector() {
                    self.l.races.end_launch();
                }
                self.l.memory.on_device = group.was_on_device;
                self.groups.pop();
                self.words.clear();
                return Ok(next);
            }
            if self.heap.is_full() || n > MAX_LANES {
                return Err(refused("so many lanes at once cannot be interpreted as yet"));
            }
            // A kernel's body does not get its number as an argument, but asks for it.
            let is_kernel = group.grid.is_some();
            let lanes = (0..n).map(|i| {
                let at = group.at + i as i64;
                let words = match (is_kernel, group.is_parallel) {
                    (true, _) => vec![end.0],
                    (false, false) => vec![at as u64, end.0],
                    // The body runs a range of iterations.
                    (false, true) => vec![at as u64, at.wrapping_add(1) as u64, end.0],
                };
                let item = if is_kernel { i } else { group.item };
                Lane { state: State::Ready(group.body, words), item, n_shared: 0 }
            });
            group.lanes = lanes.collect();
            if group.is_parallel {
                self.l.races.begin_iteration(group.at);
            }
            if group.is_vector() {
                self.l.races.meet();
            }
            group.current = 0;
            group.at += n as i64;
        }
    }

    /// Executes an operation across lanes or a query, with the arguments in `self.words`. A lane outside of a loop is
    /// one of one.
    pub(super) fn lane_operation(&mut self, op: LaneOp, scope: Scope, ret: Closure) -> Result<Closure> {
        let args = std::mem::take(&mut self.words);
        // A value that is only passed on may be uninitialized; one that decides something may not.
        let decides = match op {
            LaneOp::Get | LaneOp::Compact => args.get(1),
            _ => args.first(),
        };
        if decides == Some(&POISON) {
            return Err(eval::uninitialized());
        }
        let first = args.first().copied().unwrap_or(0);
        let in_block = self.groups.iter().any(|g| g.grid.is_some());
        let group = self.groups.last_mut();
        let result = match op {
            LaneOp::Id => group.map_or(0, |g| g.in_subgroup(g.current) as u64),
            LaneOp::Width => group.map_or(1, |g| g.subgroup_width()),
            LaneOp::Shared => self.shared(first as i64)?,
            _ => {
                let path = self.path();
                let group = self.groups.last_mut();
                let waiting = Waiting { op, scope, args, ret, path };
                match group {
                    Some(group) if op == LaneOp::Barrier && in_block && group.grid.is_none() => {
                        return Err(refused("a barrier in a `vectorize` of a kernel cannot be interpreted as yet"));
                    }
                    Some(_) => {
                        self.set_lane(State::Waiting(waiting));
                        return self.next_lane();
                    }
                    None => {
                        self.words.extend(result_of_single_lane(waiting));
                        return Ok(ret);
                    }
                }
            }
        };
        self.words.push(result);
        Ok(ret)
    }

    /// The place after the current instruction, and those of the calls that led there, innermost first.
    fn path(&self) -> Vec<u32> {
        let mut path = vec![self.pc as u32];
        let (mut func, mut frame) = (self.func, self.frame);
        let max_path = if self.options.residual { 1 } else { MAX_PATH };
        while path.len() < max_path
            && frame != NONE
            && let Some(Some(function)) = self.compiled.get(func as usize)
            && let Some(ret) = function.ret
        {
            let record = &self.heap.records[frame as usize];
            path.push(record.called_at);
            let closure = Closure(self.heap.words[record.base as usize + ret as usize]);
            let Some(&Entry::Block { func: caller, .. }) = self.l.entries.get(closure.entry() as usize) else { break };
            if !self.heap.is_alive(closure) {
                break;
            }
            (func, frame) = (caller, closure.frame());
        }
        path
    }

    /// Memory that all work items of a block share: the n-th request of each gets the same memory.
    fn shared(&mut self, bytes: i64) -> Result<u64> {
        let Some(at) = self.groups.iter().rposition(|g| g.grid.is_some()) else { return self.allocate(bytes, 1) };
        let group = &mut self.groups[at];
        let lane = &mut group.lanes[group.current];
        let n = lane.n_shared;
        lane.n_shared += 1;
        if let Some(&(address, size)) = group.shared.get(n) {
            if size as i64 != bytes {
                let text = format!(
                    "work items of one block that reserve {size} and {bytes} bytes cannot be interpreted as yet"
                );
                return Err(refused(&text));
            }
            return Ok(address as u64);
        }
        let address = self.allocate(bytes, 1)?;
        self.groups[at].shared.push((address as usize, bytes as usize));
        Ok(address)
    }
}
