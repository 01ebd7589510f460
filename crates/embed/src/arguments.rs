//! What calls pass: for each type of a signature, the Rust value that stands for it, and what becomes of it in C's convention.
//! Separate from the shapes of types in memory: a slice is one value in Rust, and a pointer, or a pointer and a length, in a call.

use crate::shape::{Shape, Type, Value};
use std::marker::PhantomData;

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// `&[T]` of Impala: a pointer to elements that are read, without their number. The value is `&[T]`.
pub struct In<T>(PhantomData<fn(T)>);
/// `&mut [T]` of Impala: a pointer to elements that are written, without their number. The value is `&mut [T]`.
pub struct Out<T>(PhantomData<fn(T)>);
/// `Slice[T]` of `std::slice`: elements that are read, and their number. The value is `&[T]`.
pub struct Slice<T>(PhantomData<fn(T)>);
/// `MutSlice[T]` of `std::slice`: elements that are written, and their number. The value is `&mut [T]`.
pub struct MutSlice<T>(PhantomData<fn(T)>);
/// `&T` of Impala: a pointer to something that is read. The value is `&T`.
pub struct Ref<T>(PhantomData<fn(T)>);
/// `&mut T` of Impala: a pointer to something that is written. The value is `&mut T`.
pub struct Mut<T>(PhantomData<fn(T)>);

/// `fn(A, …) -> R` of Impala, as `Callback<fn(A, …) -> R>`, of up to six numbers, `bool`s, pointers and structs. The value is
/// `&(dyn Fn(A, …) -> R + Sync)`: it is called while the call lasts, from several threads at once where the program runs loops in parallel,
/// once for each active lane where it runs them in lanes. If it panics, the process aborts.
pub struct Callback<F>(PhantomData<fn(F)>);

/// A type of a parameter.
pub trait Param: Sealed + 'static {
    /// The value that a call gives.
    type Value<'a>;
    /// The value as C's convention passes it.
    #[doc(hidden)]
    type Passed: Copy;
    /// What C's convention passes behind it: nothing, or an environment.
    #[doc(hidden)]
    type Behind: Copy;
    /// The value lives until the call returns.
    #[doc(hidden)]
    fn pass(value: &mut Self::Value<'_>) -> (Self::Passed, Self::Behind);
    #[doc(hidden)]
    fn shape() -> Shape;
}

impl<T: Value> Sealed for T {}
impl<T: Value> Param for T {
    type Value<'a> = T;
    type Passed = T;
    type Behind = ();
    fn pass(value: &mut T) -> (T, ()) {
        (*value, ())
    }
    fn shape() -> Shape {
        <T as Type>::shape()
    }
}

/// A slice as C has it.
#[doc(hidden)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Passed<P> {
    data: P,
    length: i64,
}

/// Rust's slices have at most `isize::MAX` bytes, but elements may have none; Impala's have a size.
fn length<T>(slice: &[T]) -> i64 {
    i64::try_from(slice.len()).unwrap_or(i64::MAX)
}

macro_rules! pointers {
    ($($name:ident: $of:ty, $value:ty, $passed:ty, |$v:ident| $pass:expr, $shape:expr;)*) => { $(
        impl<T: Type> Sealed for $name<T> {}
        impl<T: Type> Param for $name<T> {
            type Value<'a> = $value;
            type Passed = $passed;
            type Behind = ();
            fn pass($v: &mut Self::Value<'_>) -> ($passed, ()) {
                ($pass, ())
            }
            fn shape() -> Shape {
                $shape
            }
        }
    )* };
}

pointers! {
    In: T, &'a [T], *const T, |v| v.as_ptr(), Shape::pointer::<T>(false, Some(true));
    Out: T, &'a mut [T], *mut T, |v| v.as_mut_ptr(), Shape::pointer::<T>(true, Some(true));
    Slice: T, &'a [T], Passed<*const T>, |v| Passed { data: v.as_ptr(), length: length(v) }, Shape::slice::<T>("Slice", false);
    MutSlice: T, &'a mut [T], Passed<*mut T>, |v| Passed { length: length(v), data: v.as_mut_ptr() },
        Shape::slice::<T>("MutSlice", true);
    Ref: T, &'a T, *const T, |v| *v, Shape::pointer::<T>(false, Some(false));
    Mut: T, &'a mut T, *mut T, |v| *v, Shape::pointer::<T>(true, Some(false));
}

macro_rules! callbacks {
    ($($p:ident)*) => {
        impl<$($p: Value,)* R: Return> Sealed for Callback<fn($($p),*) -> R> {}
        impl<$($p: Value,)* R: Return> Param for Callback<fn($($p),*) -> R> {
            type Value<'a> = &'a (dyn Fn($($p),*) -> R + Sync);
            type Passed = usize;
            type Behind = *const ();
            #[allow(non_snake_case)]
            fn pass(value: &mut Self::Value<'_>) -> (usize, *const ()) {
                extern "C" fn call<$($p,)* R>(value: &&(dyn Fn($($p),*) -> R + Sync), $($p: $p),*) -> R {
                    value($($p),*)
                }
                let call: extern "C" fn(&&'static (dyn Fn($($p),*) -> R + Sync), $($p),*) -> R = call::<$($p,)* R>;
                (call as usize, std::ptr::from_mut(value).cast_const().cast())
            }
            fn shape() -> Shape {
                Shape::function(vec![$(<$p as Type>::shape()),*], R::shape())
            }
        }
    };
}

callbacks!();
callbacks!(A);
callbacks!(A B);
callbacks!(A B C);
callbacks!(A B C D);
callbacks!(A B C D E);
callbacks!(A B C D E G);

/// A type of a result: `()`, a number, `bool`, a pointer or a struct.
pub trait Return: Sealed + 'static {
    /// The type's shape; `None` for `()`.
    #[doc(hidden)]
    fn shape() -> Option<Shape>;
}

impl Sealed for () {}
impl Return for () {
    fn shape() -> Option<Shape> {
        None
    }
}

impl<T: Value> Return for T {
    fn shape() -> Option<Shape> {
        Some(<T as Type>::shape())
    }
}

/// The types of up to twelve parameters, as a tuple.
pub trait Args: Sealed + 'static {
    /// The values that a call gives, as a tuple.
    type Values<'a>;
    #[doc(hidden)]
    fn shapes() -> Vec<Shape>;
    /// Calls the function at an address.
    ///
    /// # Safety
    /// There is a function with C's convention whose types these are.
    #[doc(hidden)]
    unsafe fn call<R: Return>(address: usize, values: Self::Values<'_>) -> R;
}

macro_rules! tuples {
    ($($p:ident)*) => {
        impl<$($p: Param),*> Args for ($($p,)*) {
            type Values<'a> = ($($p::Value<'a>,)*);
            fn shapes() -> Vec<Shape> {
                vec![$($p::shape()),*]
            }
            #[allow(non_snake_case)]
            unsafe fn call<R: Return>(address: usize, values: Self::Values<'_>) -> R {
                let ($(mut $p,)*) = values;
                // SAFETY: the caller's promise. What is empty is not passed.
                unsafe {
                    let f: extern "C" fn($($p::Passed, $p::Behind),*) -> R = std::mem::transmute(address);
                    $(let $p = $p::pass(&mut $p);)*
                    f($($p.0, $p.1),*)
                }
            }
        }
    };
}

macro_rules! sealed_tuples {
    ($($p:ident)*) => {
        impl<$($p: Param),*> Sealed for ($($p,)*) {}
    };
}

tuples!();
sealed_tuples!(A);
tuples!(A);
sealed_tuples!(A B);
tuples!(A B);
sealed_tuples!(A B C);
tuples!(A B C);
sealed_tuples!(A B C D);
tuples!(A B C D);
sealed_tuples!(A B C D E);
tuples!(A B C D E);
sealed_tuples!(A B C D E F);
tuples!(A B C D E F);
sealed_tuples!(A B C D E F G);
tuples!(A B C D E F G);
sealed_tuples!(A B C D E F G H);
tuples!(A B C D E F G H);
sealed_tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I);
sealed_tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J);
sealed_tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K);
sealed_tuples!(A B C D E F G H I J K L);
tuples!(A B C D E F G H I J K L);
