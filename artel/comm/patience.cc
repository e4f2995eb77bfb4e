#include "artel/comm/patience.h"

#include "artel/base/log.h"

namespace artel::comm {
void Patience::look(int peer, Clock::time_point since) {
  transport_.check();
  if (transport_.status(peer).left) {
    // One more attempt: the last thing it did may have been what we wait for.
    require(!has_left_, ErrorKind::communication, "[comm] {}: rank {} has left the group",
            operation_.name(), peer);
    has_left_ = true;
  }
  const double waited = seconds_between(since, Clock::now());
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

}  // namespace artel::comm
