//! Purpose: borrowed views of the requests that a NameNode gets most: one pass over the bytes, no allocation.
//! Called by: rpc and server, in place of `decode` where a call is hot.
//! Calls: wire, packed_blocks, shape.
//! Never: copies, or accepts less than `decode`: what a view refuses is given to `decode` for the full answer.
//! Invariants: a view holds what `decode` of the same bytes gives; repeated fields are walked again when iterated.

pub mod client;
pub mod datanode;
pub mod rpc;
#[cfg(test)]
mod tests;

use crate::shape::{DecodeError, Shaped, decode, java_text};
use crate::wire::{Cursor, Fields, Value, WireError};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Why there is no view of these bytes; [`decode`] then finds the full error, or the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewError {
    /// Not wire format.
    Wire(WireError),
    /// A required field of this name is missing.
    MissingRequired(&'static str),
    /// A message field comes in several parts, which a parser merges and a view cannot. Java never writes that.
    SplitMessage(&'static str),
}

impl From<WireError> for ViewError {
    fn from(e: WireError) -> ViewError {
        ViewError::Wire(e)
    }
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewError::Wire(e) => write!(f, "{e}"),
            ViewError::MissingRequired(name) => write!(f, "required field {name} is missing"),
            ViewError::SplitMessage(name) => write!(f, "message field {name} comes in parts"),
        }
    }
}

impl std::error::Error for ViewError {}

/// A `string` field; the bytes may be anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// As Java reads it, see [`java_text`]. Borrowed if it is UTF-8.
    pub fn to_str(self) -> Cow<'a, str> {
        java_text(self.0)
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_str(), f)
    }
}

/// A message field that has no view.
pub struct Encoded<'a, M> {
    /// The encoded message.
    pub bytes: &'a [u8],
    message: PhantomData<M>,
}

impl<M> Clone for Encoded<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Encoded<'_, M> {}

impl<M> fmt::Debug for Encoded<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} encoded bytes", self.bytes.len())
    }
}

impl<M: prost::Message + Default + Shaped> Encoded<'_, M> {
    /// The message; copies the bytes.
    pub fn decode(&self) -> Result<M, DecodeError> {
        decode(bytes::Bytes::copy_from_slice(self.bytes))
    }
}

/// What a field of a view can hold. A value of another wire type is not a value of the field, as in Java.
pub trait Element<'a>: Sized {
    /// Integers and enums: repeated ones may be packed.
    const NUMERIC: bool = false;
    /// Messages are merged when they occur twice; other values replace each other.
    const MESSAGE: bool = false;

    /// From any integer encoding.
    fn of_varint(_: u64) -> Option<Self> {
        None
    }

    /// From eight bytes.
    fn of_fixed64(_: u64) -> Option<Self> {
        None
    }

    /// From a length-delimited value.
    fn of_bytes(_: &'a [u8]) -> Result<Option<Self>, ViewError> {
        Ok(None)
    }

    /// From any value.
    #[inline]
    fn of_value(value: Value<'a>) -> Result<Option<Self>, ViewError> {
        match value {
            Value::Varint(v) => Ok(Self::of_varint(v)),
            Value::Fixed64(v) => Ok(Self::of_fixed64(v)),
            Value::Bytes(b) => Self::of_bytes(b),
            Value::Fixed32(_) => Ok(None),
        }
    }
}

/// Numeric elements, each from the 64 bits of a varint.
macro_rules! numeric {
    ($($type:ty: $value:ident => $from:expr;)*) => {$(
        impl<'a> $crate::view::Element<'a> for $type {
            const NUMERIC: bool = true;

            #[inline]
            fn of_varint($value: u64) -> Option<Self> {
                $from
            }
        }
    )*};
}
pub(crate) use numeric;

numeric! {
    u64: v => Some(v);
    i64: v => Some(v as i64);
    u32: v => Some(v as u32);
    i32: v => Some(v as i32);
    bool: v => Some(v != 0);
    Sint32: v => Some(Sint32(crate::wire::unzigzag(u64::from(v as u32)) as i32));
}

/// A `sint32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sint32(pub i32);

impl<'a> Element<'a> for f64 {
    fn of_fixed64(bits: u64) -> Option<Self> {
        Some(f64::from_bits(bits))
    }
}

impl<'a> Element<'a> for Text<'a> {
    #[inline]
    fn of_bytes(bytes: &'a [u8]) -> Result<Option<Self>, ViewError> {
        Ok(Some(Text(bytes)))
    }
}

impl<'a> Element<'a> for &'a [u8] {
    #[inline]
    fn of_bytes(bytes: &'a [u8]) -> Result<Option<Self>, ViewError> {
        Ok(Some(bytes))
    }
}

impl<'a, M> Element<'a> for Encoded<'a, M> {
    const MESSAGE: bool = true;

    fn of_bytes(bytes: &'a [u8]) -> Result<Option<Self>, ViewError> {
        Ok(Some(Encoded { bytes, message: PhantomData }))
    }
}

/// A repeated field, read when iterated.
#[derive(Clone, Copy)]
pub struct Repeated<'a, T> {
    /// The message from the first occurrence on; empty if there is none.
    from_first: &'a [u8],
    number: u32,
    element: PhantomData<T>,
}

impl<T> fmt::Debug for Repeated<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "field {} in {} bytes", self.number, self.from_first.len())
    }
}

impl<'a, T: Element<'a>> Repeated<'a, T> {
    /// The elements; ends after the first error.
    pub fn iter(&self) -> Elements<'a, T> {
        Elements {
            fields: Cursor::new(self.from_first).fields(),
            packed: Cursor::new(&[]),
            number: self.number,
            element: PhantomData,
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl<'a, T: Element<'a>> IntoIterator for Repeated<'a, T> {
    type Item = Result<T, ViewError>;
    type IntoIter = Elements<'a, T>;

    fn into_iter(self) -> Elements<'a, T> {
        self.iter()
    }
}

/// Iterator of [`Repeated::iter`].
#[derive(Clone, Debug)]
pub struct Elements<'a, T> {
    fields: Fields<'a>,
    packed: Cursor<'a>,
    number: u32,
    element: PhantomData<T>,
}

impl<'a, T: Element<'a>> Elements<'a, T> {
    #[inline]
    fn read(&mut self) -> Result<Option<T>, ViewError> {
        loop {
            while !self.packed.is_empty() {
                if let Some(element) = T::of_varint(self.packed.varint()?) {
                    return Ok(Some(element));
                }
            }
            let Some((number, value)) = self.fields.next().transpose()? else { return Ok(None) };
            match value {
                _ if number != self.number => {}
                Value::Bytes(packed) if T::NUMERIC => self.packed = Cursor::new(packed),
                value => {
                    if let Some(element) = T::of_value(value)? {
                        return Ok(Some(element));
                    }
                }
            }
        }
    }
}

impl<'a, T: Element<'a>> Iterator for Elements<'a, T> {
    type Item = Result<T, ViewError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let element = self.read();
        if element.is_err() {
            self.fields = Cursor::new(&[]).fields();
            self.packed = Cursor::new(&[]);
        }
        element.transpose()
    }
}

/// Defines views: `Name<'a> of prost::Type { label field: Type = number; }` with the labels `required`, `optional`,
/// `repeated` and `default(value)`, the last for an optional field with a default. Field names are those of the prost
/// type; fields that are left out are stepped over.
macro_rules! view {
    ($($(#[$meta:meta])* $name:ident<$a:lifetime> of $message:ty {
        $($label:ident $(($default:expr))? $field:ident: $type:ty = $number:literal;)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<$a> {
            /// The whole encoded message.
            pub raw: &$a [u8],
            $(
                #[doc = concat!("Field ", stringify!($number), " of the message, ", stringify!($label), ".")]
                pub $field: $crate::view::slot!($label $a $type),
            )*
        }

        impl<$a> $name<$a> {
            /// Reads the message once; refuses what is malformed or lacks required fields.
            pub fn parse(raw: &$a [u8]) -> Result<Self, $crate::view::ViewError> {
                $($crate::view::open!($label $field $type);)*
                let mut cursor = $crate::wire::Cursor::new(raw);
                loop {
                    #[allow(unused_variables)] // only repeated fields start from here
                    let here = cursor.rest();
                    let Some((number, value)) = cursor.field()? else { break };
                    match number {
                        $($number => $crate::view::take!($label $field $type, value, here),)*
                        _ => {}
                    }
                }
                Ok($name { raw, $($field: $crate::view::close!($label $(($default))? $field $number),)* })
            }
        }

        impl<$a> $crate::view::Element<$a> for $name<$a> {
            const MESSAGE: bool = true;

            #[inline]
            fn of_bytes(bytes: &$a [u8]) -> Result<Option<Self>, $crate::view::ViewError> {
                $name::parse(bytes).map(Some)
            }
        }

        #[cfg(test)]
        impl<$a> $crate::view::tests::Same<$message> for $name<$a> {
            fn same(&self, message: &$message) -> bool {
                true $(&& $crate::view::compare!($label $(($default))? self message $field))*
            }
        }

        #[cfg(test)]
        impl<$a> $crate::view::tests::Listed for $name<$a> {
            type Message = $message;
            const FIELDS: &'static [(u32, &'static str, &'static str)] =
                &[$(($number, stringify!($field), stringify!($label))),*];
        }
    )*};
}
pub(crate) use view;

/// Type of a field of a view.
macro_rules! slot {
    (optional $a:lifetime $type:ty) => { Option<$type> };
    (repeated $a:lifetime $type:ty) => { $crate::view::Repeated<$a, $type> };
    ($label:ident $a:lifetime $type:ty) => { $type };
}
pub(crate) use slot;

/// Local variable of a field while it is read.
macro_rules! open {
    (repeated $field:ident $type:ty) => {
        let mut $field: &[u8] = &[];
    };
    ($label:ident $field:ident $type:ty) => {
        let mut $field: Option<$type> = None;
    };
}
pub(crate) use open;

/// One occurrence of a field.
macro_rules! take {
    (repeated $field:ident $type:ty, $value:ident, $here:ident) => {
        if $field.is_empty() {
            $field = $here;
        }
    };
    ($label:ident $field:ident $type:ty, $value:ident, $here:ident) => {
        if let Some(element) = <$type as $crate::view::Element<'_>>::of_value($value)? {
            if <$type as $crate::view::Element<'_>>::MESSAGE && $field.is_some() {
                return Err($crate::view::ViewError::SplitMessage(stringify!($field)));
            }
            $field = Some(element);
        }
    };
}
pub(crate) use take;

/// Final value of a field.
macro_rules! close {
    (required $field:ident $number:literal) => {
        $field.ok_or($crate::view::ViewError::MissingRequired(stringify!($field)))?
    };
    (optional $field:ident $number:literal) => {
        $field
    };
    (default($default:expr) $field:ident $number:literal) => {
        $field.unwrap_or($default)
    };
    (repeated $field:ident $number:literal) => {
        $crate::view::Repeated { from_first: $field, number: $number, element: std::marker::PhantomData }
    };
}
pub(crate) use close;

/// Whether a field is what prost read.
#[cfg(test)]
macro_rules! compare {
    (default($default:expr) $view:ident $message:ident $field:ident) => {
        $message
            .$field
            .map_or($view.$field == $default, |theirs| $crate::view::tests::Same::same(&$view.$field, &theirs))
    };
    ($label:ident $view:ident $message:ident $field:ident) => {
        $crate::view::tests::Same::same(&$view.$field, &$message.$field)
    };
}
#[cfg(test)]
pub(crate) use compare;
