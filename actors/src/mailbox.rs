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
/// that handles them all; or from the addresses of two that do together.
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

        $crate::mailbox::mailboxes! { @carries $name $($field: $message,)+ }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident of $one:ident { $($field:ident: $message:ty,)+ }
     and $other:ident { $($more:ident: $further:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $vis struct $name {
            $($field: actix::Recipient<$message>,)+
            $($more: actix::Recipient<$further>,)+
        }

        impl<$one, $other> From<(actix::Addr<$one>, actix::Addr<$other>)> for $name
        where
            $one: actix::Actor<Context = actix::Context<$one>> $(+ actix::Handler<$message>)+,
            $other: actix::Actor<Context = actix::Context<$other>> $(+ actix::Handler<$further>)+,
        {
            fn from((one, other): (actix::Addr<$one>, actix::Addr<$other>)) -> Self {
                Self { $($field: one.clone().recipient(),)+ $($more: other.clone().recipient(),)+ }
            }
        }

        $crate::mailbox::mailboxes! { @carries $name $($field: $message,)+ $($more: $further,)+ }
    };
    (@carries $name:ident $($field:ident: $message:ty,)+) => {
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
