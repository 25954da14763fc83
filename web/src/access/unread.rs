//! A request's body that nobody read to its end.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix::prelude::Stream;
use actix_web::HttpMessage;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::web::Bytes;

/// A request's body, held until its answer is out. Of a chunked body that nobody holds the server takes everything that
/// comes, for as long as it comes; where one is held and not read, it closes after the answer and lingers for a moment only.
pub(super) struct Held {
    _body: Rc<RefCell<Payload>>,
}

impl Held {
    /// Holds the body; whoever handles the request reads the same one.
    pub(super) fn new(request: &mut ServiceRequest) -> Self {
        let payload = Rc::new(RefCell::new(request.take_payload()));
        request.set_payload(Payload::Stream { payload: Box::pin(Shared(Rc::clone(&payload))) });
        Self { _body: payload }
    }

    /// Lets go when the answer is out.
    pub(super) fn until_sent(self, response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
        response.map_body(|_, body| BoxBody::new(Holding { body, _held: self }))
    }
}

struct Shared(Rc<RefCell<Payload>>);

impl Stream for Shared {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(context)
    }
}

struct Holding {
    body: BoxBody,
    _held: Held,
}

impl MessageBody for Holding {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}
