//! What a test's store leaves to the one within.

/// Methods of `Store` that do what the store in a field does.
///
/// ```text
/// impl Store for Slow {
///     fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> { .. }
///     forward!(self.inner => records object vault room);
/// }
/// ```
#[macro_export]
macro_rules! forward {
    ($self:ident.$field:tt => $($method:ident)*) => {
        $($crate::forward!(@ $method $self.$field);)*
    };
    (@ commit $self:ident.$field:tt) => {
        fn commit(&mut $self, batch: &$crate::store::Batch) -> Result<(), $crate::store::StoreError> {
            use $crate::store::Store as _;
            $self.$field.commit(batch)
        }
    };
    (@ records $self:ident.$field:tt) => {
        fn records(
            &mut $self,
            from: $crate::store::Seq,
            each: &mut dyn FnMut($crate::store::Seq, &[u8]) -> $crate::store::Next,
        ) -> Result<(), $crate::store::StoreError> {
            use $crate::store::Store as _;
            $self.$field.records(from, each)
        }
    };
    (@ object $self:ident.$field:tt) => {
        fn object(
            &mut $self,
            id: &$crate::store::ObjectId,
        ) -> Result<Option<$crate::store::Object>, $crate::store::StoreError> {
            use $crate::store::Store as _;
            $self.$field.object(id)
        }
    };
    (@ vault $self:ident.$field:tt) => {
        fn vault(
            &mut $self,
            seq: $crate::store::Seq,
        ) -> Result<Option<Vec<u8>>, $crate::store::StoreError> {
            use $crate::store::Store as _;
            $self.$field.vault(seq)
        }
    };
    (@ room $self:ident.$field:tt) => {
        fn room(&mut $self) -> Result<$crate::store::Room, $crate::store::StoreError> {
            use $crate::store::Store as _;
            $self.$field.room()
        }
    };
}
