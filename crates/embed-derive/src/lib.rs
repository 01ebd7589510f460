//! `#[derive(nyala_embed::Type)]`: Rust structs whose layout Impala knows. A crate of its own, as macros of this kind must be.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, parse_macro_input};

/// Implements `nyala_embed::Type` and `nyala_embed::Value` for a struct with named fields, all of which are such types.
///
/// The struct has `#[repr(C)]` alone, is `Copy`, and has no parameters.
#[proc_macro_derive(Type)]
pub fn derive_type(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    implementation(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn implementation(input: &DeriveInput) -> Result<TokenStream, Error> {
    let name = &input.ident;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(name, "only a struct can be a `nyala_embed::Type`"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(name, "fields are compared by name: give them names"));
    };
    if fields.named.is_empty() {
        return Err(Error::new_spanned(name, "a struct without fields has no counterpart"));
    }
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            "a struct with parameters cannot be a `nyala_embed::Type` yet",
        ));
    }
    check_layout(input)?;
    let names = fields.named.iter().filter_map(|f| f.ident.as_ref());
    let types: Vec<_> = fields.named.iter().map(|f| &f.ty).collect();
    let fields: Vec<_> = names.clone().collect();
    let texts = names.map(|n| n.to_string().trim_start_matches("r#").to_string());
    let text = name.to_string();
    Ok(quote! {
        // SAFETY: the struct has C's layout, and each field is a type of this kind, which the shape below asks for.
        unsafe impl ::nyala_embed::Type for #name {
            fn shape() -> ::nyala_embed::Shape {
                ::nyala_embed::Shape::of_struct(
                    #text,
                    ::std::vec![#((#texts, <#types as ::nyala_embed::Type>::shape())),*],
                )
            }
            fn append(values: &[Self], to: &mut ::nyala_embed::Bytes) -> bool {
                values.iter().all(|value| {
                    #(<#types as ::nyala_embed::Type>::append(::std::slice::from_ref(&value.#fields), to))&&*
                })
            }
        }
        // SAFETY: the struct has C's layout, so C's convention passes it.
        unsafe impl ::nyala_embed::Value for #name {}
        impl ::nyala_embed::Fix for #name {
            fn kind(&self) -> ::nyala_embed::FixedKind {
                ::nyala_embed::FixedKind::value::<Self>()
            }
            fn append(&self, to: &mut ::nyala_embed::Bytes) -> bool {
                <Self as ::nyala_embed::Type>::append(::std::slice::from_ref(self), to)
            }
        }
    })
}

/// Checks that the layout is C's, and nothing but C's.
fn check_layout(input: &DeriveInput) -> Result<(), Error> {
    let mut is_c = false;
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            is_c |= meta.path.is_ident("C");
            match meta.path.is_ident("C") {
                true => Ok(()),
                false => Err(meta.error("another layout than C's: write `#[repr(C)]`")),
            }
        })?;
    }
    if is_c { Ok(()) } else { Err(Error::new_spanned(&input.ident, "the layout must be C's: write `#[repr(C)]`")) }
}
