//! `goto` of ISPC's dialect, in control flow without lanes: all active lanes jump together.
//!
//! Labels belong to the region of a mask, so that a jump cannot leave it. What is declared between a jump and its label further down is not there behind the
//! label, since it may have no place.

use super::*;

/// Limit on the labels of a function.
const MAX_LABELS: usize = 1000;

pub(super) struct Label<'s> {
    block: Cont,
    /// The first jump to it before it is reached.
    jump: Option<Span>,
    place: Option<Span>,
    /// A variable in the innermost block around it.
    near: Option<(&'s str, Val)>,
}

/// By the end of the region.
pub(super) type Labels<'s> = FxHashMap<(Option<Cont>, &'s str), Label<'s>>;

impl<'s> Lowerer<'s, '_> {
    fn label_named(&mut self, name: Name<'s>) -> Lowered<(Option<Cont>, &'s str)> {
        let key = (self.mode.map(|m| m.end), name.text);
        if !self.labels.contains_key(&key) {
            if self.labels.len() >= MAX_LABELS {
                let what = format!("more than {MAX_LABELS} labels in a function");
                return Err(Box::new(limitation::not_supported(name.span, &what, "write several functions")));
            }
            let block = self.block(name.text);
            // Jumps further down may lead to it.
            self.reached.insert(block);
            self.labels.insert(key, Label { block, jump: None, place: None, near: None });
        }
        Ok(key)
    }

    pub(super) fn goto(&mut self, name: Name<'s>) -> Lowered<()> {
        let key = self.label_named(name)?;
        let Some(label) = self.labels.get_mut(&key) else { return Ok(()) };
        let block = label.block;
        match label.place {
            None => _ = label.jump.get_or_insert(name.span),
            Some(_) => {
                let is_seen = label.near.is_none_or(|(near, address)| {
                    let is_it = |e: &(Entity, Span)| matches!(e.0, Entity::Variable(v) if v.address == address);
                    self.scopes.iter().any(|s| s.get(near).is_some_and(is_it))
                });
                if !is_seen {
                    let hint = "put the label around the block";
                    return Err(Box::new(limitation::not_supported(name.span, "jumps into blocks", hint)));
                }
            }
        }
        self.jump(block, &[]);
        Ok(())
    }

    pub(super) fn label(&mut self, name: Name<'s>) -> Lowered<()> {
        let key = self.label_named(name)?;
        let local = self.scopes.iter().skip(1).rev().flat_map(|s| s.iter());
        let near = local.filter_map(|(name, e)| match e.0 {
            Entity::Variable(v) => Some((*name, v.address)),
            _ => None,
        });
        let near = near.take(1).last();
        let Some(label) = self.labels.get_mut(&key) else { return Ok(()) };
        if let Some(before) = label.place.replace(name.span) {
            return Err(Box::new(sierra_name::twice(name.span, name.text, before)));
        }
        label.near = near;
        let (block, first) = (label.block, label.jump);
        if let Some(jump) = first {
            let is_before = |span: &Span| span.file == jump.file && span.lo < jump.lo;
            for (entity, span) in self.scopes.iter_mut().skip(1).flat_map(|s| s.values_mut()) {
                if matches!(entity, Entity::Variable(_) | Entity::Lanes(_)) && !is_before(span) {
                    *entity = Entity::Skipped(SkippedBy::Goto);
                }
            }
        }
        self.jump(block, &[]);
        self.go_on_in(block);
        // Lanes may have returned on another way to it.
        if let Some(mode) = &mut self.mode {
            mode.has_left = true;
        }
        self.rest_is_cheap = false;
        self.go_on_with_lanes(name.span)
    }

    /// Reports jumps of a function that lead nowhere.
    pub(super) fn report_jumps(&mut self) {
        let labels = std::mem::take(&mut self.labels);
        let mut faults: Vec<(Span, &str)> =
            labels.iter().filter(|l| l.1.place.is_none()).filter_map(|(key, l)| Some((l.jump?, key.1))).collect();
        faults.sort_by_key(|f| (f.0.lo, f.0.hi));
        for (span, name) in faults {
            let is_elsewhere = labels.iter().any(|(key, l)| key.1 == name && l.place.is_some());
            self.sink.push(if is_elsewhere {
                let hint = "jump only where no condition or loop with lanes is around the `goto` or the label";
                limitation::not_supported(span, "jumps out of code that depends on lanes, or into it", hint)
            } else {
                sierra_name::label(span, name)
            });
        }
    }
}
