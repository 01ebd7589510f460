//! Order of definitions, that is, which things exist before others: the variables of a nested function before its calls, and the statics that
//! an initializer needs before the static. Also counts which functions are used at all.

use super::*;

/// The uses of functions and statics in the bodies that are checked.
#[derive(Default)]
pub(super) struct Uses {
    /// Functions that are used by other code.
    pub fns: FxHashSet<FnId>,
    pub nested: Vec<NestedUse>,
    /// Pairs of a function and a variable of a function around it, which it uses.
    pub captures: Vec<(FnId, LocalId)>,
    /// Triples of a static, another static that its initializer needs, and the place of that use.
    pub statics: Vec<(StaticId, StaticId, Span)>,
}

/// The use of a nested function.
pub(super) struct NestedUse {
    pub user: Option<FnId>,
    pub used: FnId,
    /// The variables with smaller numbers exist at that place.
    pub known: LocalId,
    pub span: Span,
}

impl Checker<'_, '_> {
    /// Reports functions that may run before the variables they use exist.
    pub(super) fn check_order(&mut self) {
        // The users of each nested function that is used before its declaration.
        let mut users: FxHashMap<FnId, Vec<(Option<FnId>, LocalId, Span)>> = FxHashMap::default();
        for NestedUse { user, used, known, span } in std::mem::take(&mut self.uses.nested) {
            users.entry(used).or_default().push((user, known, span));
        }
        let mut seen: FxHashSet<(FnId, LocalId)> = FxHashSet::default();
        let mut work: Vec<(FnId, LocalId)> = Vec::new();
        let captures = std::mem::take(&mut self.uses.captures);
        for (f, local) in captures {
            if !self.p.fns[f.0 as usize].top_level && seen.insert((f, local)) {
                work.push((f, local));
            }
        }
        let mut reported: FxHashSet<LocalId> = FxHashSet::default();
        let mut steps = 0u32;
        while let Some((f, local)) = work.pop() {
            steps += 1;
            if steps > 5_000_000 {
                return;
            }
            let Some(uses) = users.get(&f) else { continue };
            let declared_in = self.bodies.function(self.p.local(local).owner);
            for &(user, known, span) in uses {
                if user == declared_in {
                    if known <= local && reported.insert(local) {
                        let name = short(&self.p.local(local).name);
                        let declared = self.p.local(local).span;
                        let callee = short(&self.p.fns[f.0 as usize].ast.name.text);
                        self.report(used_before_declared::error(span, &callee, &name, declared));
                    }
                } else if let Some(user) = user
                    && seen.insert((user, local))
                {
                    work.push((user, local));
                }
            }
        }
    }

    /// Reports statics whose initializers need each other.
    pub(super) fn check_static_cycles(&mut self) {
        // 1: on the path, 2: done.
        let mut state: FxHashMap<StaticId, u8> = FxHashMap::default();
        let mut needs: FxHashMap<StaticId, Vec<(StaticId, Span)>> = FxHashMap::default();
        let all = std::mem::take(&mut self.uses.statics);
        let mut users: FxHashMap<StaticId, Vec<StaticId>> = FxHashMap::default();
        for &(from, to, _) in &all {
            users.entry(to).or_default().push(from);
        }
        // A static whose initializer needs a computed one is computed as well.
        let is_computed = |&i: &usize| self.p.statics[i].computed;
        let mut work: Vec<StaticId> =
            (0..self.p.statics.len()).filter(is_computed).map(|i| StaticId(i as u32)).collect();
        while let Some(id) = work.pop() {
            for &user in users.get(&id).into_iter().flatten() {
                if !std::mem::replace(&mut self.p.statics[user.0 as usize].computed, true) {
                    work.push(user);
                }
            }
        }
        for (from, to, span) in all {
            needs.entry(from).or_default().push((to, span));
        }
        for start in (0..self.p.statics.len()).map(|i| StaticId(i as u32)) {
            let mut stack = vec![(start, false)];
            while let Some((id, done)) = stack.pop() {
                if done {
                    state.insert(id, 2);
                    continue;
                }
                if state.contains_key(&id) {
                    continue;
                }
                state.insert(id, 1);
                stack.push((id, true));
                for &(to, span) in needs.get(&id).into_iter().flatten() {
                    match state.get(&to) {
                        Some(1) => {
                            let name = short(&self.p.statics[to.0 as usize].ast.name.text);
                            self.report(recursive_static::error(span, &name));
                        }
                        Some(_) => {}
                        None => stack.push((to, false)),
                    }
                }
            }
        }
    }
}
