//! Actors know each other by the messages they take, not by their types, so that each is tested alone.

use actix::Recipient;
use actix::prelude::{Message, SendError};

/// Has a mailbox that takes `M`.
pub trait Carries<M>
where
    M: Message + Send,
    M::Result: Send,
{
    /// That mailbox.
    fn recipient(&self) -> &Recipient<M>;

    /// Hands a message over without waiting for room or for an answer. Use it where losing one is right.
    fn offer(&self, message: M) -> Result<(), SendError<M>> {
        self.recipient().try_send(message)
    }
}

/// Declares a struct of mailboxes, one for each message its actor takes. It is made from the address of any actor
/// that handles them all.
macro_rules! mailboxes {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($field:ident: $message:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $vis struct $name { $($field: actix::Recipient<$message>,)+ }

        impl<A> From<actix::Addr<A>> for $name
        where
            A: actix::Actor<Context = actix::Context<A>> $(+ actix::Handler<$message>)+
        {
            fn from(addr: actix::Addr<A>) -> Self {
                Self { $($field: addr.clone().recipient(),)+ }
            }
        }

        $(
            impl $crate::mailbox::Carries<$message> for $name {
                fn recipient(&self) -> &actix::Recipient<$message> {
                    &self.$field
                }
            }
        )+
    };
}
pub(crate) use mailboxes;
