//! Why a scope could not be made.

/// The fault of a scope or of a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// The scope would permit nothing. Leave the dimension out instead.
    #[error("the scope would permit nothing")]
    Empty,
    /// The scope has more parts than its type may have.
    #[error("the scope has too many parts")]
    TooMany,
    /// A name that is empty or longer than [`super::Name::BYTES_MAX`].
    #[error("a name must have 1 to 256 bytes")]
    NameLength,
    /// An integer outside [-2^63, 2^64-1].
    #[error("an integer is out of range")]
    IntRange,
    /// A root that isn't 1 to 64 of `[A-Za-z0-9._-]`, or one whose name is taken.
    #[error("a root is 1 to 64 of [A-Za-z0-9._-], no dot first, not agents or workspace")]
    Root,
    /// A component that is empty, too long, `.` or `..`, or has a slash, backslash or NUL.
    #[error("a path component is not allowed")]
    Component,
    /// A path of more than [`super::RootedPath::COMPONENTS_MAX`] components.
    #[error("a path has too many components")]
    Depth,
    /// Two rules for one path that differ in rights.
    #[error("two rules give one path different rights")]
    Conflict,
    /// Text that isn't a host: lower-case labels of `[a-z0-9-]`, no trailing dot, no IP address.
    #[error("a host must be a lower-case domain name without trailing dot, not an IP address")]
    Host,
    /// A suffix longer than [`super::HostPattern::SUFFIX_BYTES_MAX`].
    #[error("a host suffix is too long")]
    SuffixLength,
    /// A range that begins at port 0 or ends before it begins.
    #[error("a port range must lie in 1 to 65535 and not be reversed")]
    PortRange,
    /// More prefix bits than the address has.
    #[error("a prefix is longer than its address")]
    PrefixLength,
    /// Bits set after the prefix.
    #[error("an address has bits set after its prefix")]
    HostBits,
    /// An IPv6 block of IPv4-mapped addresses: those are judged as the IPv4 addresses they are.
    #[error("write IPv4-mapped addresses as IPv4")]
    Mapped,
}
