//! Types as LLVM's debug metadata, with names and layouts as programs have them. Separate from `origins`, which says where code
//! comes from.

use crate::origins::Origins;
use nyala_ir::{Prim, Ty, TyKind, Types, layout};
use std::fmt::Write;

impl Origins<'_> {
    /// The node of a type. It is described at the end, as types may contain addresses of themselves.
    pub fn ty(&mut self, ty: Ty) -> u32 {
        if let Some(&node) = self.types.get(&ty) {
            return node;
        }
        let node = self.add(String::new());
        self.types.insert(ty, node);
        self.undescribed.push((ty, node));
        node
    }

    /// Describes all types that have been asked for, and those in them.
    pub fn describe_types(&mut self, types: &Types) {
        while let Some((ty, node)) = self.undescribed.pop() {
            let text = self.described(types, ty);
            self.set(node, text);
        }
    }

    fn described(&mut self, types: &Types, ty: Ty) -> String {
        let (size, align) = layout::size_align(types, ty).map_or((0, 1), |(size, align)| (8 * size, 8 * align));
        let name = types.display(ty).to_string();
        let basic =
            |encoding: &str| format!("!DIBasicType(name: \"{name}\", size: {size}, encoding: DW_ATE_{encoding})");
        match types.kind(ty) {
            TyKind::Prim(Prim::Bool) => basic("boolean"),
            TyKind::Prim(prim) if prim.is_float() => basic("float"),
            TyKind::Prim(prim) if prim.is_signed() => basic("signed"),
            TyKind::Prim(_) => basic("unsigned"),
            // Debuggers show elements of `&[T]` as those of C's `T *`.
            TyKind::Ptr { pointee, .. } => {
                let of = match types.kind(*pointee) {
                    TyKind::IndefArray(elem) => self.ty(*elem),
                    _ => self.ty(*pointee),
                };
                format!("!DIDerivedType(tag: DW_TAG_pointer_type, baseType: !{of}, size: {size})")
            }
            TyKind::Array(elem, n) => self.array(*elem, *n, size, ""),
            TyKind::IndefArray(elem) => self.array(*elem, 0, 0, ""),
            TyKind::Vector(prim, n) => {
                let Some(elem) = types.find(&TyKind::Prim(*prim)) else { return basic("unsigned") };
                let of = if *prim == Prim::Bool { size } else { u64::from(prim.bits() * *n) };
                self.array(elem, u64::from(*n), of, ", flags: DIFlagVector")
            }
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                let mut members = String::new();
                for i in 0..types.n_parts(ty).unwrap_or(0) {
                    let (Some(part), Some(at)) = (types.part(ty, i), layout::offset(types, ty, i)) else { continue };
                    let part_size = layout::size_align(types, part).map_or(0, |l| 8 * l.0);
                    let field = match types.kind(ty) {
                        TyKind::Struct(id) => types.struct_data(*id).fields[i as usize].0.clone(),
                        _ => format!("_{i}"),
                    };
                    let part = self.ty(part);
                    let member = self.add(format!(
                        "!DIDerivedType(tag: DW_TAG_member, name: \"{field}\", baseType: !{part}, size: {part_size}, offset: {})",
                        8 * at
                    ));
                    let _ = write!(members, "{}!{member}", if members.is_empty() { "" } else { ", " });
                }
                let list = self.add(format!("!{{{members}}}"));
                format!(
                    "distinct !DICompositeType(tag: DW_TAG_structure_type, name: \"{name}\", size: {size}, align: {align}, elements: !{list})"
                )
            }
            TyKind::Mem | TyKind::Cn(_) | TyKind::Code => {
                format!("!DIBasicType(tag: DW_TAG_unspecified_type, name: \"{name}\")")
            }
        }
    }

    fn array(&mut self, elem: Ty, n: u64, size: u64, flags: &str) -> String {
        let elem = self.ty(elem);
        let range = self.add(format!("!DISubrange(count: {n})"));
        let list = self.add(format!("!{{!{range}}}"));
        format!("!DICompositeType(tag: DW_TAG_array_type, baseType: !{elem}, size: {size}{flags}, elements: !{list})")
    }
}
