//! What happened on the way to where evaluation is: loops entered by `@@`, earlier calls of recursive continuations.

use super::{CHAIN, Entered, Evaluator, Record, Site, State};
use crate::whistle::{self, Change};
use nyala_base::{SideTable, Span};
use nyala_ir::{Cont, Val};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::rc::Rc;

impl Evaluator<'_> {
    // Loops of functions called by `@@`.

    pub(super) fn note_entered(&mut self, k: Cont, unfold: bool, site: &mut Site) {
        let is_top = |e: u32| self.entered[e as usize].cont == k && self.entered[e as usize].unfold == unfold;
        if self.facts.has_loop[k] && !site.past.entered.is_some_and(is_top) {
            self.entered.push(Entered { cont: k, unfold, next: site.past.entered });
            site.past.entered = Some(self.entered.len() as u32 - 1);
        }
    }

    /// Whether `k` is the header of a loop in a function that `@@` entered last.
    pub(super) fn is_unfolded_loop(&self, k: Cont, site: &Site) -> bool {
        let Some(function) = self.facts.loop_of[k].filter(|_| self.options.annotations) else { return false };
        let mut at = site.past.entered;
        for _ in 0..whistle::MAX_RECORDS {
            let Some(i) = at else { return false };
            let entered = &self.entered[i as usize];
            if entered.cont == function {
                return entered.unfold;
            }
            at = entered.next;
        }
        false
    }

    // Records of recursive calls.

    pub(super) fn record(
        &mut self,
        cont: Cont,
        free: &Rc<[Val]>,
        args: &[Val],
        segment: u32,
        next: Option<u32>,
    ) -> u32 {
        let births = self.births;
        self.last_recorded[cont] = segment;
        self.records.push(Record { cont, free: free.clone(), args: args.into(), births, segment, next });
        self.records.len() as u32 - 1
    }

    pub(super) fn ancestors(&self, k: Cont, site: &Site) -> impl Iterator<Item = &Record> {
        let mut at = site.past.records;
        let mut looked_at = 0;
        std::iter::from_fn(move || {
            while let Some(i) = at
                && looked_at < whistle::MAX_RECORDS
            {
                looked_at += 1;
                let record = &self.records[i as usize];
                at = record.next;
                if record.cont == k {
                    return Some(record);
                }
            }
            None
        })
    }

    pub(super) fn is_known_stub(&self, k: Cont, mask: u64, free: &[Val], args: &[Val]) -> bool {
        let masked = (0..args.len().min(64)).filter(|&i| mask >> i & 1 == 1).map(|i| args[i]);
        let vals: Rc<[Val]> = free.iter().copied().chain(masked).collect();
        self.memo.get(&(k, mask, vals)).is_some_and(|&s| self.stubs[s].state != State::New || self.stubs[s].queued)
    }

    pub(super) fn repeats(&self, k: Cont, free: &[Val], args: &[Val], site: &Site) -> bool {
        self.ancestors(k, site).any(|r| r.segment != site.segment && *r.free == *free && r.args[1..] == args[1..])
    }

    /// Parameters of `mask` that change without end, as far as the ancestors tell.
    pub(super) fn drift(&self, k: Cont, mask: u64, free: &[Val], args: &[Val], site: &Site) -> u64 {
        let ancestors = self.ancestors(k, site).filter(|r| r.segment != site.segment);
        for record in ancestors.take(whistle::MAX_ANCESTORS) {
            if *record.free != *free || self.is_over(record, args) {
                continue;
            }
            let mut drift = 0;
            let mut progress = false;
            for i in (0..args.len().min(64)).filter(|&i| mask >> i & 1 == 1) {
                match whistle::compare(self, record.args[i], args[i]) {
                    Change::Same => {}
                    Change::Drift => drift |= 1 << i,
                    Change::Progress => progress = true,
                }
            }
            if drift != 0 && !progress {
                return drift;
            }
        }
        0
    }

    /// Whether an earlier call has returned before a new one: what the new one returns to was there already, and does
    /// not lead to where the old one returned to. That calls follow one another is no recursion; what they are in may be.
    fn is_over(&self, old: &Record, args: &[Val]) -> bool {
        let is_function = |&i: &usize| self.source.types.has_function(self.source.ty(self.source.param(old.cont, i)));
        let Some(ret) = (0..args.len()).rev().find(is_function) else { return false };
        old.args[ret] != args[ret]
            && whistle::youngest_function(self, args[ret]) <= old.births
            && !whistle::contains(self, args[ret], old.args[ret])
    }

    /// Of the last calls before a budget is spent; describing all of them would cost too much.
    pub(super) fn note_chain(&mut self, k: Cont, args: Vec<String>, origin: Span) {
        if self.chain.len() == CHAIN {
            self.chain.pop_front();
        }
        self.chain.push_back((k, origin, args));
    }

    /// The calls around the last one of a recursive continuation, the innermost first, of several in one file only the first:
    /// where what it returns to was passed on, where the functions were that it gets, and so on with what these captured.
    pub(super) fn calls_around(&self, k: Cont) -> Vec<Span> {
        let Some(record) = self.records.iter().rev().find(|r| r.cont == k) else { return Vec::new() };
        // Where a continuation of the source is an argument.
        let mut passed: SideTable<Cont, Span> = SideTable::with_default(Span::NONE);
        for &k in &self.facts.nest.conts {
            let Some(body) = self.source.body(k) else { continue };
            body.args.iter().filter_map(|&a| self.source.as_cont(a)).for_each(|arg| passed[arg] = body.origin);
        }
        let mut calls: Vec<Span> = Vec::new();
        let mut work: VecDeque<Val> = record.args.iter().rev().chain(record.free.iter()).copied().collect();
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        while let Some(v) = work.pop_front() {
            let Some((k, vals)) = self.captured(v).filter(|_| seen.insert(v)) else { continue };
            if !passed[k].is_none() && calls.iter().all(|c| c.file != passed[k].file) {
                calls.push(passed[k]);
            }
            let free = self.facts.nest.free(k).iter().zip(vals);
            work.extend(free.filter(|(f, _)| self.source.types.has_function(self.source.ty(**f))).map(|(_, &v)| v));
        }
        calls
    }
}
