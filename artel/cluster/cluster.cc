#include "artel/cluster/cluster.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/host_name.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/processor_quota.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/base/version.h"
#include "artel/cluster/differences.h"
#include "artel/cluster/door.h"
#include "artel/cluster/entrance.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/regrouping.h"
#include "artel/cluster/token.h"
#include "artel/cluster/vitals.h"
#include "artel/cluster/worker_name.h"
#include "artel/ps/server.h"

namespace artel {
namespace {

using comm::control::Endpoint;
using comm::control::name_of;
using comm::control::Participant;
using comm::control::Roster;

std::set<int> numbers_of(const std::vector<Participant>& members) {
  std::set<int> numbers;
  for (const Participant& member : members) numbers.insert(member.number);
  return numbers;
}

// Seconds of silence at a door where no other patience was asked for.
constexpr double kPatience = 20;
// For the others to hear that a worker leaves.
constexpr double kLeaveSeconds = 1;

// What a newcomer has that the run has not.
std::string differences_from_run(const std::string& newcomer, const std::string& run) {
  std::vector<std::string> all;
  for (const Difference& each : differences(newcomer, run))
    all.push_back(fmt::format("it has '{}', the run has '{}'",
                              each.own.empty() ? "nothing" : each.own,
                              each.other.empty() ? "nothing" : each.other));
  return listed(std::move(all));
}

// What the group knew of its members, also if it is broken.
std::map<int, RegroupingOptions::Sign> signs_of(const Membership& membership) {
  std::map<int, RegroupingOptions::Sign> signs;
  if (!membership.group) return signs;
  const comm::Group& group = membership.world ? *membership.world : *membership.group;
  const std::vector<Participant> all = membership.everybody();
  for (size_t peer = 0; peer < all.size(); ++peer) {
    const comm::PeerStatus status = group.status(static_cast<int>(peer));
    signs[all[peer].number] = {status.silent_seconds, status.phase};
  }
  return signs;
}

// A server needs to know nothing, but has to speak the same language.
std::string server_introduction() { return fmt::format("version = {}", kHeaderVersion); }

// Says once, after a few seconds, what this worker waits for: the others, or somebody who listens.
std::function<void()> notice_of_waiting(const std::string& address, double timeout) {
  constexpr double kSecondsUntil = 3, kSecondsToAnswer = 1;
  return [=, due = Deadline::after(kSecondsUntil), told = false]() mutable {
    if (told || !due.passed()) return;
    told = true;
    const Endpoint place = comm::control::parse_endpoint(address);
    const comm::control::Reached reached = comm::control::reach(place, kSecondsToAnswer);
    if (reached.socket.get() >= 0)
      return log(LogLevel::info, "waiting at {} for the other workers, up to {:g} s", address,
                 timeout);
    log(LogLevel::warning,
        "{} at {}: waiting up to {:g} s for worker 0 (cluster.join_timeout); a run that is under "
        "way can be joined at port {} of any of its machines",
        reached.refused ? "nobody listens" : "no answer", address, timeout, place.port);
  };
}

// As many whole cores as a quota allows; at least one.
int within_quota(int cores, const std::optional<double>& quota) {
  if (!quota) return std::max(1, cores);
  return std::clamp(static_cast<int>(std::lround(*quota)), 1, std::max(1, cores));
}

// The cores that this process was given.
cpu_set_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_SET(0, &cores);
  return cores;
}

}  // namespace

Cluster::Cluster() : vitals_(std::make_shared<VitalSigns>()) { count_own_cores(); }

void Cluster::count_own_cores() {
  const cpu_set_t own = own_cores();
  cores_ = {within_quota(CPU_COUNT(&own), processor_quota())};
}

Cluster::Cluster(int, char**) : Cluster() {
  if (const std::optional<comm::GroupOptions> options = launched_group()) connect(*options);
}

Cluster::Cluster(const comm::GroupOptions& options) : vitals_(std::make_shared<VitalSigns>()) {
  connect(options);
}

void Cluster::connect(const comm::GroupOptions& options) {
  options_ = options;
  options_.encrypt = options.encrypt && options.transport != "shm";  // nothing leaves this machine
  options_.vitals = [vitals = vitals_] { return to_bytes(vitals->now()); };
  servers_ = options.servers;
  meeting_place_ = options.address;
  // Newcomers may come as soon as all have met.
  if (options.elastic && options.transport != "mpi") open_door();
  // A newcomer by the folder of a run knows no size.
  is_server_ =
      servers_ > 0 && (options.rank == comm::control::kAnyServer ||
                       (options.size > servers_ && options.rank >= options.size - servers_));
  if (!options.doors.empty()) return stay_outside(options.doors);
  std::shared_ptr<comm::Group> all;
  try {
    comm::GroupOptions first = options_;
    if (options.transport != "shm" && options.transport != "mpi")
      first.while_joining = notice_of_waiting(options.address, options.join_timeout);
    all = std::make_shared<comm::Group>(comm::Group::connect(first));
  } catch (const comm::control::UnderWay& run) {
    return stay_outside(run.doors);
  } catch (const Error& error) {
    // Only this worker knows where its token comes from, so it has to say it.
    const bool refused = std::string_view(error.what()).find("wrong token") != std::string::npos;
    if (const std::string advice = refused ? token_advice() : ""; !advice.empty())
      fail(ErrorKind::invalid_argument, "{}: {}; {}", host_name(), error.what(), advice);
    throw;
  }
  // An MPI that does not understand its launcher puts each worker alone in its own world.
  require(all->size() == options.size, ErrorKind::communication,
          "[cluster] workers: got {} through {}, expected the {} that were started; try mpirun, or "
          "srun "
          "--mpi=pmix",
          all->size(), all->transport(), options.size);
  const int workers = all->size() - servers_;
  require(workers >= 1, ErrorKind::invalid_argument,
          "cluster.servers: got {} of {} processes, expected at least one worker as well", servers_,
          all->size());
  is_server_ = all->rank() >= workers;
  take_group(std::move(all), servers_);
  if (door_ || (servers_ > 0 && options.transport != "mpi")) exchange_doors();
}

// The last ranks are servers.
void Cluster::take_group(std::shared_ptr<comm::Group> all, int servers) {
  if (servers_ == 0) {
    membership_.group = std::move(all);
  } else {
    membership_.world = std::move(all);
    const bool serves = membership_.world->rank() >= membership_.world->size() - servers;
    membership_.group = std::make_shared<comm::Group>(membership_.world->split(serves ? 1 : 0));
  }
  share_cores();
}

// With the servers, if there are any.
comm::Group& Cluster::everybody() const {
  return membership_.world ? *membership_.world : *membership_.group;
}

void Cluster::stay_outside(std::vector<std::string> doors) {
  require(door_ != nullptr, ErrorKind::unsupported,
          "[cluster] the run is under way, and this worker cannot join it with cluster.elastic = "
          "false");
  count_own_cores();
  options_.doors = std::move(doors);
  outside_ = true;
}

// Where this worker can be found.
void Cluster::open_door() {
  if (options_.transport == "shm") {
    const std::string name = fmt::format("@artel/{}/{}", options_.address, options_.rank);
    try {
      if (options_.doors.empty())
        door_ = std::make_unique<Door>(Endpoint{.host = name}, options_.token);
    } catch (const Error&) {
      // Another run has this name, which need be its own only while it forms.
    }
    if (!door_)
      door_ = std::make_unique<Door>(Endpoint{.host = "@artel/" + random_token()}, options_.token);
  } else {
    const std::string towards = options_.doors.empty() ? options_.address : options_.doors.front();
    require_token(comm::control::parse_endpoint(towards), options_.token);
    const std::string host = options_.interface.empty()
                                 ? address_towards(comm::control::parse_endpoint(towards))
                                 : comm::control::address_of_interface(options_.interface);
    door_ = std::make_unique<Door>(Endpoint{.host = host}, options_.token, options_.encrypt);
  }
  options_.door = door_->address();
}

// All tell each other where they can be found. Somebody who cannot be found makes it useless.
void Cluster::exchange_doors() {
  comm::Group& all = everybody();
  number_ = all.rank();
  struct Card {
    int32_t process, place;
    std::array<char, 120> door;
  };
  Card own{getpid(), options_.place, {}};
  const std::string door = door_ ? door_->address() : "";
  require(door.size() < own.door.size(), ErrorKind::internal,
          "[cluster] door: got '{}', expected at most {} characters", door, own.door.size() - 1);
  std::copy(door.begin(), door.end(), own.door.begin());
  std::vector<Card> cards(static_cast<size_t>(all.size()));
  all.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(cards)), {},
                 {.label = "doors"});
  if (std::ranges::any_of(cards, [](const Card& card) { return card.door[0] == 0; }))
    return door_.reset();
  const std::vector<std::string> hosts = all.hosts();
  const int workers = all.size() - servers_;
  for (int rank = 0; rank < all.size(); ++rank)
    (rank < workers ? membership_.members : membership_.servers)
        .push_back({.number = rank,
                    .host = hosts[rank],
                    .process = cards[rank].process,
                    .door = cards[rank].door.data(),
                    .place = cards[rank].place,
                    .server = rank < workers ? -1 : rank - workers});
  membership_.next_number = all.size();
  announce();
}

// The membership that has been agreed on; its group is still to be formed, and then announced.
void Cluster::take(const Roster& roster) {
  membership_ = {.generation = roster.generation,
                 .group = nullptr,
                 .members = {},
                 .next_number = roster.next_number};
  for (const Participant& member : roster.members)
    (member.server < 0 ? membership_.members : membership_.servers).push_back(member);
}

// Tells the door and the launcher who belongs to the membership.
void Cluster::announce() {
  const std::vector<Participant> everybody = membership_.everybody();
  door_->set_membership(membership_.generation, everybody, number_, membership_.next_number);
  listen_at_known_port();
  std::string news = "met " + door_->address();
  for (const Participant& member : everybody) news += "," + member.door;
  for (const Participant& member : everybody)
    if (member.number == number_) news += " " + name_of(member);
  tell_launcher(news);
}

// Newcomers know the port at which the run began. Each worker shows them the way at that port of
// its own machine, unless another one does so there.
void Cluster::listen_at_known_port() {
  if (options_.transport == "shm" || meeting_place_.empty()) return;
  const Endpoint known = comm::control::parse_endpoint(meeting_place_);
  const std::string own = comm::control::parse_endpoint(door_->address()).host;
  if (!door_->open_also_at({.host = own, .port = known.port})) door_->open_also_at(known);
}

// Tries again if a member is lost while the group with this newcomer is formed.
void Cluster::enter() {
  constexpr int kMostTries = 5;
  for (int tries = 1;; ++tries) try {
      enter_once();
      outside_ = false;
      return announce();
    } catch (const Error& error) {
      if (membership_.members.empty() || tries == kMostTries) throw;
      log(LogLevel::debug, "worker {}: {}", number_, error.what());
      step_outside();
    }
}

void Cluster::enter_once() {
  Entrance entrance({.doors = options_.doors,
                     .token = options_.token,
                     .encrypt = options_.encrypt,
                     .knock = {.wish = comm::control::Knock::Wish::join,
                               .generation = -1,
                               .self = {.host = host_name(),
                                        .process = getpid(),
                                        .door = door_->address(),
                                        .place = options_.place,
                                        .server = is_server_ ? 0 : -1},
                               .introduction = introduction_},
                     .patience = options_.watch.patience > 0 ? options_.watch.patience : kPatience,
                     .join_timeout = options_.join_timeout});
  const Roster roster = entrance.wait();
  for (const Participant& member : roster.members)
    if (member.door == door_->address()) number_ = member.number;
  take(roster);
  form_group(roster.address, [&] { entrance.check(); });
}

bool Cluster::accepts_newcomers(int most) {
  if (!door_ || rank() != 0) return false;
  // Where the run began, the first group may have listened until now.
  if (membership_.generation > 0 && Clock::now() >= next_look_) {
    listen_at_known_port();
    next_look_ = Clock::now() + std::chrono::seconds(1);
  }
  if (!door_->has_newcomers()) return false;
  // Members do not knock between two steps: these belong to a membership that was given up.
  const std::set<int> members = numbers_of(membership_.everybody());
  for (const Door::Guest& guest : door_->guests())
    if (!members.contains(guest.knock.self.number))
      door_->tell(guest.id,
                  {comm::control::FrameType::refusal,
                   fmt::format("worker {} is not part of the run", guest.knock.self.number)});
  accepted_.clear();
  int workers = size(), servers = static_cast<int>(membership_.servers.size());
  for (const Door::Guest& guest : door_->newcomers()) {
    int& count = guest.knock.self.server < 0 ? workers : servers;
    const std::string objection = objection_to(
        guest.knock, count < (&count == &servers ? servers_ : std::min(most, options_.most)));
    if (!objection.empty()) {
      door_->tell(guest.id, {comm::control::FrameType::refusal, objection});
      continue;
    }
    accepted_.insert(guest.id);
    ++count;
  }
  return !accepted_.empty();
}

// Why a newcomer may not enter; empty: it may. `room`: another one of its kind can be used.
std::string Cluster::objection_to(const comm::control::Knock& newcomer, bool room) const {
  const bool serves = newcomer.self.server >= 0;
  if (!room)
    return fmt::format("it has {} already, as many as it can use ({})",
                       serves ? counted(servers_, "server") : counted(size(), "worker"),
                       serves ? "cluster.servers" : "cluster.lanes, cluster.workers");
  constexpr int kMostMissed = 3;
  if (const auto missed = missed_.find(newcomer.self.door);
      missed != missed_.end() && missed->second >= kMostMissed)
    return fmt::format(
        "it was let in {} times, but could not be reached at {} when the group formed", kMostMissed,
        newcomer.self.door);
  const std::string expected = serves ? server_introduction() : introduction_;
  if (newcomer.introduction == expected) return {};
  return "it was started differently: " + differences_from_run(newcomer.introduction, expected);
}

void Cluster::invite() {
  const std::string cause =
      fmt::format("{} newcomer{} to the run", accepted_.size(), accepted_.size() == 1 ? "" : "s");
  if (group()) everybody().dissolve(cause);
  fail(ErrorKind::communication, "[cluster] {}", cause);
}

void Cluster::receive_newcomers() {
  fail(ErrorKind::communication, "[cluster] newcomers to the run");
}

bool Cluster::dismissed() const { return door_ && door_->dismissed(); }

void Cluster::leave() {
  std::vector<comm::control::Link> links;
  for (const Participant& member : membership_.everybody()) {
    if (member.number == number_) continue;
    comm::control::Reached reached =
        comm::control::reach(comm::control::parse_endpoint(member.door), kLeaveSeconds);
    if (reached.socket.get() < 0) continue;
    links.emplace_back(std::move(reached.socket));
    links.back().introduce(door_->secret(), comm::control::FrameType::knock,
                           to_body(comm::control::Knock{.wish = comm::control::Knock::Wish::leave,
                                                        .generation = membership_.generation,
                                                        .self = own_card()}));
  }
  // All know it before their group breaks.
  const Deadline deadline = Deadline::after(kLeaveSeconds);
  while (!links.empty() && !deadline.passed()) {
    std::erase_if(links, [](comm::control::Link& link) {
      bool heard = false;
      link.flush();
      link.read([&](const comm::control::Frame& frame) {
        heard |= frame.type != comm::control::FrameType::beat;
      });
      return heard || link.closed;
    });
    if (!links.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  tell_launcher("left");
  if (group()) everybody().dissolve(fmt::format("worker {} leaves", number_));
  log(LogLevel::info, "worker {} (process {}) leaves the run", number_, getpid());
  membership_ = {.generation = membership_.generation, .group = nullptr};
  cores_ = {cores_.front()};
  door_.reset();
}

void Cluster::wait_for_newcomers(int most, const std::function<bool()>& stop) {
  wait_for_newcomers(most, fmt::format("the run needs {} (cluster.workers)", options_.least), stop);
}

void Cluster::wait_for_newcomers(int most, const std::string& need,
                                 const std::function<bool()>& stop) {
  if (rank() != 0) {
    // Worker 0 ends this by breaking the group up.
    group()->barrier({.label = "more workers", .timeout = options_.wait + options_.timeout});
    return;
  }
  if (group()) everybody().set_phase("waiting for workers");
  log(LogLevel::warning, "{} left, but {}: waiting up to {:g} s for others (cluster.wait)",
      counted(size(), "worker"), need, options_.wait);
  const Deadline deadline = Deadline::after(options_.wait);
  while (!accepts_newcomers(most) && !stop()) {
    require(
        !deadline.passed(), ErrorKind::timeout,
        "[cluster] workers: got {} for {:g} s (cluster.wait), but {}; resume the run when there "
        "are more",
        size(), options_.wait, need);
    door_->wait(0.1);
    if (group()) group()->check();
  }
  if (!accepted_.empty()) invite();
  if (group()) group()->barrier({.label = "more workers"});
}

// Meets with those who are left until a group of them is formed. Returns what has changed, by the
// numbers of workers.
std::map<int, std::string> Cluster::meet_again(Deadline deadline) {
  std::map<int, std::string> reasons;
  const Membership last = membership_;
  std::vector<Roster> agreed;
  while (true) {
    Regrouping meeting(
        *door_, last,
        {.self = own_card(),
         .patience = options_.watch.patience > 0 ? options_.watch.patience : kPatience,
         .deadline = deadline,
         .signs = signs_of(last),
         .agreed = agreed,
         .accepted = accepted_,
         .next_number = last.next_number,
         .lost_after = lost_after_,
         .address = [this] { return place_for_a_group(); }});
    const Roster roster = meeting.meet();
    agreed.push_back(roster);
    accepted_.clear();
    for (const Roster::Change& change : roster.changes) reasons[change.number] = change.what;
    note_missed(roster);
    take(roster);
    try {
      form_group(roster.address, [&] { meeting.check(); });
      admitted_.clear();
      announce();
      return reasons;
    } catch (const Error& error) {
      // Somebody was lost on the way: those who are left meet once more.
      membership_ = last;
      door_->dismiss();
      if (deadline.passed()) throw;
      log(LogLevel::debug, "worker {}: {}", number_, error.what());
    }
  }
}

// Counts how often a newcomer that was let in was not there when the group formed.
void Cluster::note_missed(const Roster& roster) {
  for (const std::string& newcomer : admitted_)
    if (std::ranges::none_of(roster.members,
                             [&](const Participant& member) { return member.door == newcomer; }))
      ++missed_[newcomer];
  admitted_.clear();
  for (const Roster::Change& change : roster.changes)
    if (change.what == "joins")
      for (const Participant& member : roster.members)
        if (member.number == change.number) admitted_.insert(member.door);
}

MembershipChange Cluster::regroup(const Error& cause, bool progressed) {
  if (!door_) throw cause;
  if (group()) everybody().dissolve(cause.what());  // others may not have noticed anything
  const Clock::time_point begin = Clock::now();
  const std::vector<Participant> before = membership_.everybody();
  std::map<int, std::string> reasons;
  try {
    reasons = meet_again(Deadline::after(options_.timeout));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::cancelled) throw;
    return rejoin(error);
  }
  MembershipChange change = {.seconds = seconds_between(begin, Clock::now())};
  const std::vector<Participant> present = membership_.everybody();
  const std::set<int> now = numbers_of(present), earlier = numbers_of(before);
  for (const Participant& member : before)
    if (!now.contains(member.number))
      change.gone.push_back({member, reasons.contains(member.number) ? reasons[member.number]
                                                                     : std::string("ended")});
  for (const Participant& member : present)
    if (!earlier.contains(member.number)) change.came.push_back(member);
  // If nothing has changed, something else is wrong with the group: perhaps only for once.
  constexpr int kMostInVain = 3;
  // A newcomer who was let in and never came is no fault of the others.
  const bool changed = !change.gone.empty() || !change.came.empty() || !reasons.empty();
  in_vain_ = changed || progressed ? 0 : in_vain_ + 1;
  if (in_vain_ > kMostInVain) throw cause;
  require(!membership_.members.empty(), ErrorKind::cancelled, "[cluster] no worker is left: {}",
          cause.what());
  if (servers_ > 0 && membership_.servers.empty()) fail_without_servers(change);
  if (rank() == 0 && !is_server_) {
    speak_for_the_run();
    log_change(change, cause);
  }
  return change;
}

void Cluster::fail_without_servers(const MembershipChange& change) {
  std::vector<std::string> lost;
  for (const auto& [who, why] : change.gone)
    if (who.server >= 0)
      lost.push_back(
          fmt::format("{} (process {} on host {}) {}", name_of(who), who.process, who.host, why));
  fail(ErrorKind::cancelled,
       "[cluster] no parameter server is left: {}; resume the run from its last checkpoint with "
       "--resume",
       fmt::join(lost, ", "));
}

MembershipChange Cluster::rejoin(const Error& cause) {
  const Clock::time_point begin = Clock::now();
  log(LogLevel::warning, "{}: it joins them again", cause.what());
  step_outside();
  enter();
  return {.rejoined = true, .seconds = seconds_between(begin, Clock::now())};
}

void Cluster::step_outside() {
  std::vector<std::string> doors;
  for (const Participant& member : membership_.everybody())
    if (member.number != number_) doors.push_back(member.door);
  door_->dismiss();
  door_->set_membership(-1, {}, -1, 0);
  membership_ = {};
  stay_outside(std::move(doors));
}

void Cluster::log_change(const MembershipChange& change, const Error& cause) const {
  std::string rest = fmt::format("going on with {}", counted(size(), "worker"));
  if (servers_ > 0) rest += " and " + counted(membership_.servers.size(), "server");
  if (change.gone.empty() && change.came.empty())
    log(LogLevel::warning, "{}: {}", cause.what(), rest);
  for (const auto& [who, why] : change.gone)
    log(LogLevel::warning, "{} (process {} on host {}) {}: {}", name_of(who), who.process, who.host,
        why, rest);
  for (const Participant& who : change.came)
    log(LogLevel::info, "{} (process {} on host {}) joins: {}", name_of(who), who.process, who.host,
        rest);
}

Participant Cluster::own_card() const {
  for (const Participant& each : membership_.everybody())
    if (each.number == number_) return each;
  fail(ErrorKind::internal, "[cluster] {} is not part of its membership", number_);
}

// Where a group can meet that this worker leads.
std::string Cluster::place_for_a_group() const {
  if (options_.transport == "shm") return "artel-" + random_token();
  const std::string host = comm::control::parse_endpoint(door_->address()).host;
  const comm::FileHandle free = comm::control::listen_at({.host = host});
  return to_string(Endpoint{host, comm::control::port_of(free.get())});
}

// The group of the present members, who have met a moment ago.
void Cluster::form_group(const std::string& address, const std::function<void()>& meanwhile) {
  constexpr double kSeconds = 10;
  comm::GroupOptions options = options_;
  options.address = address;
  const std::vector<Participant> all = membership_.everybody();
  options.size = static_cast<int>(all.size());
  options.servers = static_cast<int>(membership_.servers.size());
  options.rank = 0;
  while (all[static_cast<size_t>(options.rank)].number != number_) ++options.rank;
  options.join_timeout = std::min(options.join_timeout, kSeconds);
  options.while_joining = meanwhile;
  std::shared_ptr<comm::Group> formed;
  if (options.size > 1) formed = std::make_shared<comm::Group>(comm::Group::connect(options));
  cores_ = {cores_.front()};
  if (formed) take_group(std::move(formed), options.servers);
}

void Cluster::reform(const std::vector<int>& members) {
  const auto own = std::find(members.begin(), members.end(), rank());
  require(own != members.end(), ErrorKind::invalid_argument,
          "[cluster] members: got {}, expected this worker, {}, among them",
          fmt::join(members, ", "), rank());
  for (const int member : members)
    require(member >= 0 && member < size() && std::ranges::count(members, member) == 1,
            ErrorKind::invalid_argument,
            "[cluster] members: got {}, expected ranks from 0 to {}, each once",
            fmt::join(members, ", "), size() - 1);
  require(door_ && group() && group()->transport() == "shm" && servers_ == 0,
          ErrorKind::unsupported,
          "[cluster] a new group: got {}, expected workers of one machine by shm without servers; "
          "try a new run from the last checkpoint",
          !group()       ? "one worker"
          : servers_ > 0 ? "servers"
                         : group()->transport());
  // Groups of disjoint members meet at different places, and never where a group has met before.
  comm::GroupOptions options = options_;
  options.address = fmt::format(
      "artel-{:016x}",
      mix_key({hash_name(options_.address), static_cast<uint64_t>(membership_.generation),
               static_cast<uint64_t>(members.front())}));
  options.rank = static_cast<int>(own - members.begin());
  options.size = static_cast<int>(members.size());
  Membership next = {.generation = membership_.generation + 1,
                     .group = nullptr,
                     .members = {},
                     .next_number = membership_.next_number};
  for (const int member : members) next.members.push_back(membership_.members[member]);
  if (options.size > 1) next.group = std::make_shared<comm::Group>(comm::Group::connect(options));
  // Nothing has changed if that has failed.
  const int cores_before = cores();
  options_ = std::move(options);
  membership_ = std::move(next);
  cores_ = {cores_before};
  door_->set_membership(membership_.generation, membership_.members, number_,
                        membership_.next_number);
  if (group()) share_cores();
}

void Cluster::attempt(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    const std::string cause = fmt::format("worker {} (process {} on host {}) ran out of memory",
                                          number_, getpid(), host_name());
    if (elastic() && group()) {
      // The others continue without it, as after its death.
      tell_launcher("apart");
      everybody().dissolve(cause);
    } else if (group()) {
      group()->abort(cause);
    }
    fail(ErrorKind::memory, "[cluster] {}", cause);
  } catch (const std::exception& error) {
    // MPI may end this process, too, before anybody else has a chance to say why.
    if (group() && group()->transport() == "mpi" && rank() == 0)
      log(LogLevel::warning, "{}; MPI ends the job: --resume goes on from the last checkpoint",
          error.what());
    if (group()) group()->abort(fmt::format("{}: {}", worker_name(*group(), rank()), error.what()));
    throw;
  }
}

void Cluster::serve() {
  ps::Holdings kept;
  introduce(server_introduction());
  if (outside_) enter();
  std::atomic<bool> pushed = false;
  comm::Traffic before;  // of memberships before this one
  while (true) try {
      membership_.world->set_phase("serving");
      const int servers = door_ ? static_cast<int>(membership_.servers.size()) : servers_;
      ps::Server(membership_.world,
                 {.workers = membership_.world->size() - servers,
                  .on_push =
                      [&](int64_t staleness) {
                        pushed = true;
                        vitals_->count_push(staleness);
                        comm::Traffic traffic = before;
                        traffic += membership_.world->traffic();
                        vitals_->set({.sent_bytes = traffic.sent_bytes,
                                      .received_bytes = traffic.received_bytes});
                      }},
                 &kept)
          .run();
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::communication) throw;
      before += membership_.world->traffic();
      try {
        // What a server kept that the others have given up is out of date.
        if (regroup(error, pushed.exchange(false)).rejoined) kept.clear();
      } catch (const Error& ended) {
        if (!outside_) throw;
        // The others had gone on without it, and need it no more.
        return log(LogLevel::info, "{}", ended.what());
      }
    }
}

Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;

// Launchers may bind each process to its own cores, or let all processes on a machine use all
// cores.
void Cluster::share_cores() {
  struct Given {
    cpu_set_t cores;
    double quota;  // of this process or of several together; 0: none
  };
  const Given own = {own_cores(), processor_quota().value_or(0)};
  std::vector<Given> given(static_cast<size_t>(size()));
  group()->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(given)),
                      {}, {.label = "cores"});
  const std::vector<int> hosts = group()->host_numbers();
  cores_.clear();
  for (size_t mine = 0; mine < given.size(); ++mine) {
    cpu_set_t of_host;
    CPU_ZERO(&of_host);
    int sharing = 0;
    for (size_t rank = 0; rank < given.size(); ++rank) {
      if (hosts[rank] != hosts[mine]) continue;
      CPU_OR(&of_host, &of_host, &given[rank].cores);
      ++sharing;
    }
    const double quota = given[mine].quota;
    cores_.push_back(within_quota(CPU_COUNT(&of_host) / sharing,
                                  quota > 0 ? std::optional(quota / sharing) : std::nullopt));
  }
}

std::vector<std::string> Cluster::members() const {
  const comm::Group* const group = membership_.group.get();
  const std::vector<std::string> hosts = group ? group->hosts() : std::vector<std::string>{""};
  std::vector<std::string> lines;
  for (int rank = 0; rank < size(); ++rank)
    lines.push_back(fmt::format("worker {}{}{}, {}", rank, group ? " on host " : "", hosts[rank],
                                counted(cores_[rank], "core")));
  return lines;
}

}  // namespace artel
