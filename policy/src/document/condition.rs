//! Conditions: tests of attributes, joined by `all`, `any` and `not`.

use alloc::{boxed::Box, vec::Vec};

use syscap_format::{Cidr, Host, ParamType};

use super::attribute::Attribute;

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// Every one; of none, it holds.
    All(Vec<Condition>),
    /// At least one; of none, it does not hold.
    Any(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
    /// A test.
    Test(Test),
}

/// One attribute against constants: never against another attribute, so that analysis is exact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Test {
    /// The attribute in question.
    pub attribute: Attribute,
    /// The test.
    pub ask: Ask,
}

/// A test of an attribute. On one that is missing, erased or of another type than the constants the
/// answer is unknown, but for [`Ask::Exists`] and [`Ask::Missing`], which are unknown only where it
/// is erased.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    /// `eq`: it is the constant.
    Eq(Constant),
    /// `in`: it is one of the constants; at least one.
    In(Vec<Constant>),
    /// `exists`: it is there.
    Exists,
    /// `missing`: it is not there.
    Missing,
    /// `schema`: it is of that type.
    Schema(ParamType),
    /// `lt`: it is an integer below.
    Lt(i128),
    /// `le`: it is an integer, at most this.
    Le(i128),
    /// `gt`: it is an integer above.
    Gt(i128),
    /// `ge`: it is an integer, at least this.
    Ge(i128),
    /// `prefix`: it is text that begins so. Not of paths and hosts.
    Prefix(Box<str>),
    /// `suffix`: it is text that ends so. Not of paths and hosts.
    Suffix(Box<str>),
    /// `within`: it is a path, or an agent, that is this or lies below it by components.
    Within(Box<str>),
    /// `domain`: it is a host that is this or lies below it by labels.
    Domain(Host),
    /// `cidr`: it is an address of this block.
    Cidr(Cidr),
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Constant {
    /// `false` or `true`.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// Text.
    Text(Box<str>),
}
