#include "artel/comm/connection/patience.h"

#include "artel/base/log.h"

namespace artel::comm {
void Patience::look(int peer, Clock::time_point since) {
  transport_.check();
  if (transport_.status(peer).left) {
    // One more attempt: the peer may have completed the operation before it left.
    require(!has_left_, ErrorKind::communication, "[comm] {}: rank {} has left the group",
            operation_.name(), peer);
    has_left_ = true;
  }
  const double waited = seconds_between(since, Clock::now());
  if (watch_.patience > 0) {
    give_up_the_silent(peer);
    give_up_a_cut_path(peer, waited);
  }
  if (deadline_.passed())
    fail(ErrorKind::timeout, "[comm] {}: gave up after {:.1f} s of waiting for {}",
         operation_.name(), waited, transport_.describe(transport_.suspect(peer)));
  if (waited < std::max(watch_.after, next_report_)) return;
  next_report_ = waited * 2;  // 10 s, 20 s, 40 s: a reminder, not a flood
  const std::string line = fmt::format("{}: waiting {:.0f} s for {}", operation_.name(), waited,
                                       transport_.describe(transport_.suspect(peer)));
  if (watch_.report)
    watch_.report(line);
  else
    log(LogLevel::warning, "{}", line);
}

// A rank that computes gives signs of life; one that is stopped, or behind a cut wire, does not.
void Patience::give_up_the_silent(int peer) {
  const int suspect = transport_.suspect(peer);
  const PeerStatus status = transport_.status(suspect);
  if (status.left || status.silent_seconds <= watch_.patience) return;
  if (suspect >= watch_.spared_from && suspect < watch_.spared_to) return;
  transport_.abort(ErrorKind::communication,
                   fmt::format("[comm] {}: {} does not answer", operation_.name(),
                               transport_.describe(suspect)));
  transport_.check();
}

// Two ranks that both reach rank 0 may not reach each other. Heartbeats of the peer are known
// through rank 0, so rank 0's news must be recent.
void Patience::give_up_a_cut_path(int peer, double waited) {
  constexpr double kShare = 0.25, kFresh = 1.5;
  if (!watch_.is_cut || waited < kShare * watch_.patience) return;
  const PeerStatus status = transport_.status(peer);
  if (peer == 0 || transport_.rank() == 0 || status.left ||
      transport_.status(0).silent_seconds > kFresh || !watch_.is_cut(status))
    return;
  transport_.abort(
      ErrorKind::communication,
      fmt::format("[comm] {}: rank {} on host {} and rank {} on host {} cannot reach each other, "
                  "though both reach rank 0",
                  operation_.name(), transport_.rank(), transport_.hosts()[transport_.rank()], peer,
                  status.host));
  transport_.check();
}

}  // namespace artel::comm
