#include "artel/cluster/cut_paths.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "artel/base/error.h"
#include "artel/comm/control/link.h"

namespace artel {

using namespace comm::control;

// A connection to a member's door. Reconnects when it ends.
struct CutPaths::Line {
  std::optional<Attempt> attempt;
  std::optional<Link> link;  // set once connected
  Clock::time_point answered = Clock::now();

  void look(const Participant& member, const comm::RunSecret& secret);
};

void CutPaths::Line::look(const Participant& member, const comm::RunSecret& secret) {
  if (link) {
    link->flush();
    link->read([this](const Frame&) { answered = Clock::now(); });
    if (link->closed) link.reset();
    return;
  }
  if (!attempt) attempt.emplace(parse_endpoint(member.door));
  const Attempt::State state = attempt->look();
  if (state == Attempt::State::pending) return;
  if (state == Attempt::State::connected) {
    link.emplace(attempt->take());
    // Sent without a generation, so that it does not take part in an election.
    link->introduce(
        secret, FrameType::request,
        to_body(DoorRequest{.purpose = DoorRequest::Purpose::probe, .generation = -1, .self = {}}));
  }
  // A refused connection proves that the machine is reachable.
  if (state == Attempt::State::refused) answered = Clock::now();
  attempt.reset();
}

CutPaths::CutPaths(comm::RunSecret secret) : secret_(std::move(secret)) {}
CutPaths::~CutPaths() = default;

void CutPaths::watch(const std::vector<Participant>& members, int own) {
  const MutexLock lock(mutex_);
  members_ = members;
  std::erase_if(members_, [&](const Participant& member) {
    return member.number == own || parse_endpoint(member.door).local();
  });
  std::erase_if(lines_, [&](const auto& line) ARTEL_REQUIRES(mutex_) {
    return std::ranges::count(members_, line.first, &Participant::number) == 0;
  });
}

void CutPaths::look() {
  constexpr double kLongestPause = 1;
  const MutexLock lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (seconds_between(looked_, now) > kLongestPause) lines_.clear();
  looked_ = now;
  for (const Participant& member : members_) {
    std::unique_ptr<Line>& line = lines_[member.number];
    if (!line) line = std::make_unique<Line>();
    try {
      line->look(member, secret_);
    } catch (const Error&) {
      line->attempt.reset();  // unreachable now; the next call tries again
    }
  }
}

bool CutPaths::is_cut(const comm::PeerStatus& peer, double seconds) {
  look();
  const MutexLock lock(mutex_);
  const auto member = std::ranges::find_if(members_, [&](const Participant& each) {
    return each.process == peer.process && each.host == peer.host;
  });
  if (member == members_.end()) return false;
  const double unanswered =
      seconds_between(lines_.at(member->number)->answered, Clock::now()) - peer.silent_seconds;
  return unanswered >= seconds;
}

std::set<int> CutPaths::unanswered(double seconds, const std::map<int, double>& silent) const {
  constexpr double kFresh = 2;
  const MutexLock lock(mutex_);
  std::set<int> numbers;
  const Clock::time_point now = Clock::now();
  if (seconds_between(looked_, now) > kFresh) return numbers;
  for (const auto& [number, line] : lines_) {
    const auto found = silent.find(number);
    const double silence = found == silent.end() ? 0 : found->second;
    if (seconds_between(line->answered, now) - silence >= seconds) numbers.insert(number);
  }
  return numbers;
}

double cut_seconds(double patience) { return std::max(2.0, patience / 2); }

std::vector<int> members_to_leave(const std::vector<Participant>& members,
                                  std::set<std::pair<int, int>> cut) {
  std::vector<int> leaving;
  const auto touches = [](int number) {
    return [number](const auto& pair) { return pair.first == number || pair.second == number; };
  };
  const auto is_member = [&](int number) {
    return std::ranges::count(members, number, &Participant::number) > 0;
  };
  std::erase_if(cut, [&](const auto& pair) {
    return !is_member(pair.first) || !is_member(pair.second) ||
           touches(members.front().number)(pair);
  });
  while (!cut.empty()) {
    const auto order = [&](const Participant& member) {
      return std::tuple(std::ranges::count_if(cut, touches(member.number)), member.server < 0,
                        &member - members.data());
    };
    const int number = std::ranges::max_element(members, {}, order)->number;
    leaving.push_back(number);
    std::erase_if(cut, touches(number));
  }
  return leaving;
}

}  // namespace artel
