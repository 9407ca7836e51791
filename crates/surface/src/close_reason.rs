//! Reasons for the end of a session: the word in `SessClose`, the class (error or not), the
//! counter.
//!
//! Source: observed `SessClose` records and `MAIN.sc_*` of Varnish 7.1.1.

use crate::counter::Main;

/// Reason for the end of a client session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum CloseReason {
    RemClose,
    ReqClose,
    ReqHttp10,
    RxBad,
    RxBody,
    RxJunk,
    RxOverflow,
    RxTimeout,
    RxCloseIdle,
    TxPipe,
    TxError,
    TxEof,
    RespClose,
    Overload,
    PipeOverflow,
    RangeShort,
    ReqHttp20,
    VclFailure,
    RapidReset,
}

impl CloseReason {
    /// The word in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CloseReason::RemClose => "REM_CLOSE",
            CloseReason::ReqClose => "REQ_CLOSE",
            CloseReason::ReqHttp10 => "REQ_HTTP10",
            CloseReason::RxBad => "RX_BAD",
            CloseReason::RxBody => "RX_BODY",
            CloseReason::RxJunk => "RX_JUNK",
            CloseReason::RxOverflow => "RX_OVERFLOW",
            CloseReason::RxTimeout => "RX_TIMEOUT",
            CloseReason::RxCloseIdle => "RX_CLOSE_IDLE",
            CloseReason::TxPipe => "TX_PIPE",
            CloseReason::TxError => "TX_ERROR",
            CloseReason::TxEof => "TX_EOF",
            CloseReason::RespClose => "RESP_CLOSE",
            CloseReason::Overload => "OVERLOAD",
            CloseReason::PipeOverflow => "PIPE_OVERFLOW",
            CloseReason::RangeShort => "RANGE_SHORT",
            CloseReason::ReqHttp20 => "REQ_HTTP20",
            CloseReason::VclFailure => "VCL_FAILURE",
            CloseReason::RapidReset => "RAPID_RESET",
        }
    }

    /// True if `sess_closed_err` counts this reason.
    #[must_use]
    pub fn is_error(self) -> bool {
        match self {
            CloseReason::ReqHttp10
            | CloseReason::RxBad
            | CloseReason::RxBody
            | CloseReason::RxJunk
            | CloseReason::RxOverflow
            | CloseReason::RxTimeout
            | CloseReason::TxError
            | CloseReason::Overload
            | CloseReason::PipeOverflow
            | CloseReason::RangeShort
            | CloseReason::ReqHttp20
            | CloseReason::VclFailure
            | CloseReason::RapidReset => true,
            CloseReason::RemClose
            | CloseReason::ReqClose
            | CloseReason::RxCloseIdle
            | CloseReason::TxPipe
            | CloseReason::TxEof
            | CloseReason::RespClose => false,
        }
    }

    /// The counter of this reason.
    #[must_use]
    pub fn counter(self) -> Main {
        match self {
            CloseReason::RemClose => Main::ScRemClose,
            CloseReason::ReqClose => Main::ScReqClose,
            CloseReason::ReqHttp10 => Main::ScReqHttp10,
            CloseReason::RxBad => Main::ScRxBad,
            CloseReason::RxBody => Main::ScRxBody,
            CloseReason::RxJunk => Main::ScRxJunk,
            CloseReason::RxOverflow => Main::ScRxOverflow,
            CloseReason::RxTimeout => Main::ScRxTimeout,
            CloseReason::RxCloseIdle => Main::ScRxCloseIdle,
            CloseReason::TxPipe => Main::ScTxPipe,
            CloseReason::TxError => Main::ScTxError,
            CloseReason::TxEof => Main::ScTxEof,
            CloseReason::RespClose => Main::ScRespClose,
            CloseReason::Overload => Main::ScOverload,
            CloseReason::PipeOverflow => Main::ScPipeOverflow,
            CloseReason::RangeShort => Main::ScRangeShort,
            CloseReason::ReqHttp20 => Main::ScReqHttp20,
            CloseReason::VclFailure => Main::ScVclFailure,
            CloseReason::RapidReset => Main::ScRapidReset,
        }
    }
}
