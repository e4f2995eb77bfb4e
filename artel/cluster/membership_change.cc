#include "artel/cluster/membership_change.h"

#include <fmt/format.h>

#include <set>

#include "artel/base/log.h"
#include "artel/comm/control/wire.h"

namespace artel {
namespace {

using comm::control::name_of;
using comm::control::Participant;

std::set<int> numbers_of(const std::vector<Participant>& members) {
  std::set<int> numbers;
  for (const Participant& member : members) numbers.insert(member.number);
  return numbers;
}

}  // namespace

MembershipChange change_between(const std::vector<Participant>& before,
                                const std::vector<Participant>& now,
                                const MembershipEvents& events) {
  const std::set<int> earlier = numbers_of(before), present = numbers_of(now);
  const auto reason = [&](const Participant& member) {
    const auto found = events.reasons.find(member.number);
    return found != events.reasons.end() ? found->second : std::string("ended");
  };
  MembershipChange change;
  for (const Participant& member : before)
    if (!present.contains(member.number)) change.gone.push_back({member, reason(member)});
  for (const Participant& member : events.admitted) {
    if (present.contains(member.number)) continue;
    const std::string why = reason(member);
    change.missed.push_back({member, why == "ended" ? "it was lost while the group formed" : why});
  }
  for (const Participant& member : now)
    if (!earlier.contains(member.number)) change.came.push_back(member);
  return change;
}

void log_change(const MembershipChange& change, const Error& cause, const std::string& rest) {
  if (change.empty()) log(LogLevel::warning, "{}: {}", cause.what(), rest);
  for (const auto& [who, why] : change.gone)
    log(LogLevel::warning, "{} (process {} on host {}) {}: {}", name_of(who), who.process, who.host,
        why, rest);
  for (const auto& [who, why] : change.missed)
    log(LogLevel::warning, "{} (process {} on host {}) failed to join: {}; {}", name_of(who),
        who.process, who.host, why, rest);
  for (const Participant& who : change.came)
    log(LogLevel::info, "{} (process {} on host {}) joins: {}", name_of(who), who.process, who.host,
        rest);
}

void fail_without_servers(const MembershipChange& change) {
  std::vector<std::string> lost;
  for (const auto& [who, why] : change.gone)
    if (who.server >= 0)
      lost.push_back(
          fmt::format("{} (process {} on host {}) {}", name_of(who), who.process, who.host, why));
  fail(ErrorKind::cancelled,
       "[cluster] no parameter server is left: {}; resume from the last checkpoint",
       fmt::join(lost, ", "));
}

}  // namespace artel
