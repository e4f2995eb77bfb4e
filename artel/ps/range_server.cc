#include "artel/ps/range_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/mutex.h"
#include "artel/comm/rank_name.h"
#include "artel/ps/backup.h"
#include "artel/ps/contribution.h"
#include "artel/ps/cut.h"
#include "artel/ps/delay_clock.h"
#include "artel/ps/filters/value_packing.h"
#include "artel/ps/gathering.h"
#include "artel/ps/key_lists.h"
#include "artel/ps/known_values.h"
#include "artel/ps/lane_shares.h"
#include "artel/ps/messages.h"
#include "artel/ps/report.h"
#include "artel/ps/shard.h"
#include "artel/ps/squares.h"

namespace artel::ps {

class RangeServer::State {
 public:
  State(std::shared_ptr<comm::Group> group, const ServerOptions& options, const Place& place)
      : world_(std::move(group)),
        group_(*world_),
        options_(options),
        range_(place.range),
        kept_(place.slot) {
    for (int worker = 0; worker < options_.workers; ++worker)
      connections_.push_back(std::make_unique<Connection>(world_, worker, range_));
    if (place.backup >= 0) backup_.emplace(world_, place.backup, range_);
  }

  void run() {
    std::vector<std::thread> threads;
    for (const auto& connection : connections_)
      threads.emplace_back([this, &connection] { serve(*connection); });
    std::thread listener;
    if (backup_) listener = std::thread([this] { listen_to_backup(); });
    for (std::thread& thread : threads) thread.join();
    if (backup_) {
      {
        const MutexLock lock(mutex_);
        left_ = true;
        if (!failure_) attempt([this] { backup_->leave(); });
      }
      listener.join();
    }
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // An answer that waits for its turn and for the clock.
  struct Pending {
    Header request;
    const std::vector<uint64_t>* listed = nullptr;
    std::shared_ptr<Gathering> gathering;  // waits until it is settled
    std::string text;
    Kind kind = Kind::done;
    uint64_t needs = 0;  // messages that the backup must have acknowledged
  };

  struct Connection {
    Connection(const std::shared_ptr<comm::Group>& group, int worker, int range)
        : worker(worker), outbox(group, worker, reply_tag(range)) {}
    int worker;
    Outbox outbox;
    KeyLists lists;
    std::deque<Pending> pending;
    std::optional<KnownValues> known;  // set by the setup
  };

  int number() const { return group_.rank() - options_.workers; }
  Shard& shard() ARTEL_REQUIRES(mutex_) { return kept_->shard(); }
  Shard::Allocate allocator() {
    return [this](size_t bytes) { return group_.allocate(bytes); };
  }
  // The number in the run of a contribution's worker, or -1 if all contributions are added.
  int contributor(int worker) const ARTEL_REQUIRES(mutex_) {
    if (setup_.together) return -1;
    return setup_.workers.empty() ? worker : setup_.workers[static_cast<size_t>(worker)].number;
  }

  // Runs `body` and stores its error for `run`. clang cannot see that `body` holds the mutex.
  void attempt(const auto& body) ARTEL_REQUIRES(mutex_) ARTEL_NOT_CHECKED {
    try {
      body();
    } catch (...) {
      keep(std::current_exception());
    }
  }

  void keep(const std::exception_ptr& failure) ARTEL_REQUIRES(mutex_) {
    if (!failure_) failure_ = failure;
    thawed_.notify_all();
  }

  // The thread that receives acknowledgements of the backup.
  void listen_to_backup() {
    while (true) {
      uint64_t arrived = 0;
      std::exception_ptr failure;
      try {
        arrived = backup_->receive();
      } catch (...) {
        failure = std::current_exception();
      }
      const MutexLock lock(mutex_);
      if (failure) keep(failure);
      if (failure_) return;
      attempt([&]() ARTEL_REQUIRES(mutex_) {
        backup_->arrive(arrived);
        answer_all();
      });
      if (failure_ || (left_ && arrived == backup_->sent())) return;
    }
  }

  // The thread of one worker.
  void serve(Connection& connection) {
    try {
      while (true) {
        Message message = receive_message(group_, connection.worker, request_tag(range_), true);
        MutexLock lock(mutex_);
        // Ends when worker 0 thaws the server or is lost, or the group fails.
        thawed_.wait(lock, [&]() ARTEL_REQUIRES(mutex_) {
          return failure_ || !waits(connection.worker, message.header);
        });
        try {
          handle(connection, message);
        } catch (const Error& error) {
          if (error.kind() == ErrorKind::communication) throw;
          refuse(connection, message.header, error);
        }
        answer_all();
        if (message.header.kind == Kind::leave) return;
      }
    } catch (const Error& error) {
      const MutexLock lock(mutex_);
      if (group_.has_left(connection.worker)) return lose(connection);
      // Aborts the group, because workers would wait forever for an answer. If the group has
      // failed, its first cause is kept.
      const std::string cause = fmt::format("server {} cannot continue with {}: {}", number(),
                                            name_of(connection), error.what());
      if (error.kind() == ErrorKind::communication)
        group_.dissolve(cause);
      else
        group_.abort(cause);
      keep(std::current_exception());
    } catch (...) {
      group_.abort(fmt::format("server {} failed", number()));
      const MutexLock lock(mutex_);
      keep(std::current_exception());
    }
  }

  // "worker 2 on n03"
  std::string name_of(const Connection& connection) const {
    return "worker " + comm::rank_name(group_.hosts(), connection.worker);
  }

  // True if a message must wait until the cut is lifted.
  bool waits(int worker, const Header& header) const ARTEL_REQUIRES(mutex_) {
    return (header.kind == Kind::push || header.kind == Kind::exchange) &&
           !cut_.admits(worker, header.iteration);
  }

  void refuse(Connection& connection, const Header& request, const Error& error)
      ARTEL_REQUIRES(mutex_) {
    connection.pending.push_back(
        {.request = request,
         .text = fmt::format("server {} refused the {} of {} at iteration {}: {}", number(),
                             to_string(request.kind), name_of(connection), request.iteration,
                             error.what()),
         .kind = Kind::refusal});
  }

  void lose(Connection& connection) ARTEL_REQUIRES(mutex_) {
    if (connection.worker == 0) thaw();
    if (!clock_ || !clock_->present(connection.worker)) return;
    if (setup_.together && setup_.lanes != options_.workers)
      group_.abort(fmt::format("{} was lost in a synchronous step", name_of(connection)));
    const int64_t finished = clock_->finished(connection.worker);
    lost_[connection.worker] = finished;
    connection.pending.clear();
    leave(connection.worker);
    const std::string line = fmt::format(
        "server {}: {} was lost after iteration {}; the others continue without its part of "
        "the data",
        number(), name_of(connection), finished);
    if (options_.note)
      options_.note(line);
    else
      log(LogLevel::warning, "{}", line);
    answer_all();
  }

  void leave(int worker) ARTEL_REQUIRES(mutex_) {
    clock_->drop(worker);
    if (worker == 0) thaw();
    settle_complete();
  }

  void freeze(int worker, const Message& message) ARTEL_REQUIRES(mutex_) {
    require(worker == 0 && !setup_.together, ErrorKind::invalid_argument,
            "[ps] freeze: expected one from worker 0, of workers that run apart");
    cut_.set(frozen_from_text(message.value_text()).finished);
    thawed_.notify_all();  // the cut may have moved
  }

  void thaw() ARTEL_REQUIRES(mutex_) {
    cut_.lift();
    thawed_.notify_all();
  }

  void handle(Connection& connection, Message& message) ARTEL_REQUIRES(mutex_) {
    const Header& header = message.header;
    connection.outbox.forget(header.received);
    if (header.kind == Kind::setup) return set_up(connection, message);
    require(clock_.has_value(), ErrorKind::invalid_argument,
            "[ps] got a request before worker 0 has configured the server");
    require(shard().keys().contains(header.keys), ErrorKind::invalid_argument,
            "[ps] keys: got {} to {}, expected some of {} to {}", header.keys.first,
            header.keys.last, shard().keys().first, shard().keys().last);
    if (header.has(stop)) stopping_ = true;
    Pending pending{.request = header, .listed = connection.lists.read(message)};
    switch (header.kind) {
      case Kind::assign:
        assign(header, message.values);
        break;
      case Kind::push:
      case Kind::exchange:
        contribute(connection, message, pending);
        break;
      case Kind::pull:
        if (header.has(afresh)) connection.known->forget(header.keys);
        if (header.has(held)) release(header);
        break;
      case Kind::report:
        if (header.has(rests)) leave(connection.worker);
        pending.kind = Kind::text;
        break;
      case Kind::shares:
        pending.text = shares(connection.worker, header);
        pending.kind = Kind::text;
        break;
      case Kind::freeze:
        freeze(connection.worker, message);
        pending.kind = Kind::text;
        break;
      case Kind::thaw:
        thaw();
        break;
      case Kind::leave:
        leave(connection.worker);
        return;
      default:
        fail(ErrorKind::invalid_argument, "[ps] a {} is not a request", to_string(header.kind));
    }
    if (header.kind == Kind::pull || header.kind == Kind::exchange) pending.kind = Kind::values;
    if (backup_) pending.needs = backup_->sent();
    connection.pending.push_back(std::move(pending));
  }

  void set_up(Connection& connection, const Message& message) ARTEL_REQUIRES(mutex_) {
    require(connection.worker == 0 && gatherings_.empty(), ErrorKind::invalid_argument,
            "[ps] setup: expected one from worker 0, between iterations");
    setup_ = setup_from_text(message.value_text());
    codec_ = setup_.compress.empty() ? nullptr : comm::make_codec(setup_.compress);
    if (kept_)
      kept_->adopt(setup_);
    else
      kept_ = std::make_shared<KeptRange>(setup_, options_.rules, allocator());
    for (const auto& other : connections_)
      if (!other->known) other->known.emplace(setup_.keys, allocator());
    if (backup_) backup_->set_up(setup_);
    std::vector<int64_t> finished(static_cast<size_t>(options_.workers), setup_.finished);
    if (!setup_.workers.empty()) {
      require(std::ssize(setup_.workers) == options_.workers, ErrorKind::invalid_argument,
              "[ps] setup: got {} workers, expected {}", setup_.workers.size(), options_.workers);
      std::ranges::transform(setup_.workers, finished.begin(), &Setup::Worker::finished);
    }
    cut_ = Cut(finished);
    clock_.emplace(std::move(finished), setup_.delay);
    pushes_before_ = kept_->pushes;
    if (setup_.rule.contains("name") && setup_.rule.at("name") == "proximal")
      penalty_ = proximal_from_options(setup_.rule);
    shares_ = {setup_.lanes, options_.workers};
    connection.pending.push_back({.request = message.header});
  }

  void assign(const Header& header, std::span<const std::byte> bytes) ARTEL_REQUIRES(mutex_) {
    std::vector<float> values(header.keys.size());
    const auto target = std::as_writable_bytes(std::span(values));
    require(bytes.size() == target.size(), ErrorKind::invalid_argument,
            "[ps] assign: got {} bytes, expected {} for {} keys", bytes.size(), target.size(),
            values.size());
    if (!bytes.empty()) std::memcpy(target.data(), bytes.data(), bytes.size());
    const Change change = {
        .kind = Change::Kind::assign, .state = header.state, .keys = header.keys};
    kept_->make(change, header.keys, values);
    conclude(change, values, {});
    if (!codec_ || header.state >= 0) return;
    // Workers have the assigned values, so coded answers send only changes.
    for (const auto& other : connections_) other->known->set(header.keys, values);
  }

  void contribute(Connection& connection, Message& message, Pending& pending)
      ARTEL_REQUIRES(mutex_) {
    const Header& header = message.header;
    if (header.has(held)) check_held(header);
    require(!header.has(same_list) ||
                (setup_.together && pending.listed && !backup_ && !header.has(held)),
            ErrorKind::unsupported,
            "[ps] push of listed rows: expected workers in step, one copy of each range, and no "
            "sums that are held back");
    Contribution contribution = read_contribution(message, pending.listed, group_, codec_.get());
    if (header.has(in_place))
      group_.count_in_place(connection.worker, 0,
                            contribution.partials.size() * header.keys.size() * sizeof(float));
    require_finite(contribution, header.keys,
                   [this](uint64_t key) ARTEL_REQUIRES(mutex_) { return shard().name_of(key); });
    const uint64_t version = this->version();
    cut_.contribute(connection.worker, header.iteration);
    if (header.has(finishes)) clock_->finish(connection.worker, header.iteration);
    // A step repeated after the loss of a worker or server.
    if (const std::string* const squares =
            (pending.listed && !header.has(same_list)) || setup_.workers.empty()
                ? nullptr
                : kept_->find(contributor(connection.worker), header.keys, header.iteration)) {
      if (!header.has(held)) return;
      pending.kind = Kind::text;
      pending.text = *squares;
      return;
    }
    const auto staleness = static_cast<int64_t>(version - std::min(version, header.version));
    if (header.has(finishes)) {
      ++kept_->pushes;
      ++kept_->staleness[staleness];
      if (options_.on_push) options_.on_push(staleness);
    }
    if (setup_.together) {
      gather(header, std::move(contribution), pending);
    } else {
      apply_at_once(connection, header, contribution, staleness);
    }
  }

  void check_held(const Header& header) ARTEL_REQUIRES(mutex_) {
    require(setup_.together && header.kind == Kind::push, ErrorKind::invalid_argument,
            "[ps] {}: only pushes in a synchronous step can be held back", to_string(header.kind));
    for_each_weight(header.keys, [&](const Segment& segment) {
      require(header.keys.contains(segment.keys), ErrorKind::invalid_argument,
              "[ps] push of keys {} to {}: expected all of '{}', whose squares are needed",
              header.keys.first, header.keys.last, segment.name);
    });
  }

  // Calls visit(segment) for the weight segments that contain some of the keys, all of which belong
  // to this server.
  void for_each_weight(const KeyRange& keys, const auto& visit) ARTEL_REQUIRES(mutex_) {
    shard().for_each([&](const Segment& segment, std::span<const float>) {
      if (segment.kind == SegmentKind::weight && !intersection(segment.keys, keys).empty())
        visit(segment);
    });
  }

  void gather(const Header& header, Contribution contribution, Pending& pending)
      ARTEL_REQUIRES(mutex_) {
    const auto key = std::make_tuple(header.iteration, header.keys.first, header.keys.last);
    std::shared_ptr<Gathering>& gathering = gatherings_[key];
    if (!gathering) {
      gathering = std::make_shared<Gathering>(header.keys, setup_.lanes);
      gathering->iteration = header.iteration;
      gathering->step.learning_rate = header.learning_rate;
      gathering->step.scale = header.scale;
      gathering->to_state = header.has(to_state);
      gathering->held = header.has(held);
      gathering->same_list = header.has(same_list);
    }
    gathering->add(std::move(contribution));
    pending.gathering = gathering;
    if (gathering->held) pending.kind = Kind::text;
    settle_complete();
  }

  // Settles complete gatherings in the order of iterations, so that updates of a range never
  // overtake each other.
  void settle_complete() ARTEL_REQUIRES(mutex_) {
    // If each lane is a worker, lanes of lost workers are ignored.
    const auto is_gone = [this](int lane) ARTEL_REQUIRES(mutex_) {
      return setup_.lanes == options_.workers && !clock_->present(lane);
    };
    for (auto at = gatherings_.begin(); at != gatherings_.end();) {
      Gathering& gathering = *at->second;
      if (!gathering.settled && gathering.complete(is_gone)) settle(gathering);
      const bool applied = gathering.settled && gathering.squares.empty();
      at = applied ? gatherings_.erase(at) : std::next(at);
    }
  }

  // Applies a complete sum, or holds it back until its release if it contains weights.
  void settle(Gathering& gathering) ARTEL_REQUIRES(mutex_) {
    if (gathering.held) gathering.squares = squares_of(gathering);
    if (gathering.squares.empty()) apply(gathering);
    gathering.settled = true;
  }

  std::string squares_of(const Gathering& gathering) ARTEL_REQUIRES(mutex_) {
    Squares squares;
    for_each_weight(gathering.keys(), [&](const Segment& segment) {
      squares[segment.keys.first] = gathering.sum_of_squares(segment.keys);
    });
    return to_text(squares);
  }

  // All workers compute the same factor from the same squares. The first to arrive is applied.
  void release(const Header& header) ARTEL_REQUIRES(mutex_) {
    const auto found = gatherings_.find({header.iteration, header.keys.first, header.keys.last});
    if (found == gatherings_.end()) return;
    Gathering& gathering = *found->second;
    require(gathering.settled, ErrorKind::invalid_argument,
            "[ps] pull of keys {} to {}: other workers have not yet pushed what it is to release",
            header.keys.first, header.keys.last);
    gathering.step.scale = header.scale;
    apply(gathering);
    gatherings_.erase(found);
  }

  // Records an applied change and sends it to the backup.
  void conclude(const Change& change, std::span<const float> values, const std::string& squares)
      ARTEL_REQUIRES(mutex_) {
    kept_->note(change, squares);
    if (backup_) backup_->send(change, values, squares);
  }

  void apply(Gathering& gathering) ARTEL_REQUIRES(mutex_) {
    const KeyRange keys = gathering.keys();
    const int all = setup_.observations > 0 ? setup_.observations : setup_.lanes;
    gathering.step.number = kept_->update_number(-1, gathering.iteration);
    const Change change = {
        .kind = gathering.to_state ? Change::Kind::add_to_state : Change::Kind::update,
        .lanes = all,
        .own = all,
        .iteration = gathering.iteration,
        .keys = keys,
        .step = gathering.step,
        .pushes = kept_->pushes};
    const uint64_t most = std::max<uint64_t>(1, shard().most_keys_at_once());
    // Only the backup needs the whole sum at once.
    std::vector<float> sum(backup_ ? keys.size() : std::min(most, keys.size()));
    for (const KeyRange& part : gathering.ranges(most)) {
      const std::span<float> total =
          std::span(sum).subspan(backup_ ? part.first - keys.first : 0, part.size());
      gathering.sum(part.first, total);
      kept_->make(change, part, total);
    }
    conclude(change, sum, gathering.squares);
    if (backup_) gathering.needs = backup_->sent();
  }

  void apply_at_once(const Connection& connection, const Header& header,
                     const Contribution& contribution, int64_t staleness) ARTEL_REQUIRES(mutex_) {
    require(contribution.partials.size() == 1, ErrorKind::invalid_argument,
            "[ps] push: got {} partial sums, expected one", contribution.partials.size());
    const int worker = contributor(connection.worker);
    const Change change = {.worker = worker,
                           .lanes = setup_.lanes,
                           .own = contribution.lanes.size(),
                           .iteration = header.iteration,
                           .keys = header.keys,
                           .step = {kept_->update_number(worker, header.iteration),
                                    header.learning_rate, header.scale},
                           .pushes = kept_->pushes,
                           .staleness = staleness};
    const float* values = contribution.partials.front();
    if (!contribution.listed) {
      kept_->make(change, header.keys, {values, header.keys.size()});
      return conclude(change, {values, header.keys.size()}, {});
    }
    require(!backup_, ErrorKind::unsupported, "[ps] lists of keys go with one copy of each range");
    // Runs of neighbouring keys.
    const std::vector<uint64_t>& keys = *contribution.listed;
    for (size_t begin = 0; begin < keys.size();) {
      size_t end = begin + 1;
      while (end < keys.size() && keys[end] == keys[end - 1] + 1) ++end;
      kept_->make(change, {keys[begin], keys[end - 1] + 1}, {values + begin, end - begin});
      begin = end;
    }
    conclude(change, {}, {});
  }

  // Number of updates so far: whole iterations, or single pushes.
  uint64_t version() const ARTEL_REQUIRES(mutex_) {
    return setup_.together
               ? static_cast<uint64_t>(clock_->slowest())
               : static_cast<uint64_t>(setup_.finished) + kept_->pushes - pushes_before_;
  }

  // Sends the answers that the clock allows.
  void answer_all() ARTEL_REQUIRES(mutex_) {
    for (const auto& connection : connections_)
      while (!connection->pending.empty() && may_answer(*connection)) {
        answer(*connection, connection->pending.front());
        connection->lists.done(connection->pending.front().listed);
        connection->pending.pop_front();
      }
  }

  bool may_answer(const Connection& connection) const ARTEL_REQUIRES(mutex_) {
    const Pending& pending = connection.pending.front();
    if (pending.kind == Kind::refusal || !clock_) return true;
    if (pending.gathering && !pending.gathering->settled) return false;
    if (backup_ && backup_->arrived() <
                       std::max(pending.needs, pending.gathering ? pending.gathering->needs : 0))
      return false;
    if (pending.request.kind == Kind::freeze && !cut_.reached(*clock_)) return false;
    if (pending.request.has(after_all) && clock_->slowest() < pending.request.iteration)
      return false;
    const bool begins_another = pending.request.has(finishes) && !pending.gathering;
    return !begins_another || clock_->may_start(connection.worker);
  }

  void answer(Connection& connection, const Pending& pending) ARTEL_REQUIRES(mutex_) {
    Header reply{.kind = pending.kind,
                 .request = pending.request.request,
                 .flags = stopping_ ? uint32_t{stop} : 0,
                 .iteration = pending.request.iteration,
                 .version = clock_ ? version() : 0,
                 .keys = pending.request.keys};
    if (pending.kind != Kind::values) {
      const std::string said = said_by(pending);
      const auto text = std::as_bytes(std::span(said));
      return connection.outbox.send(reply, {text.begin(), text.end()});
    }
    reply.flags |= pending.request.flags & (in_place | masked | coded);
    connection.outbox.send(reply, reply_values(connection, pending, reply));
  }

  // A report is made in request order, after all earlier requests have been applied.
  std::string said_by(const Pending& pending) ARTEL_REQUIRES(mutex_) {
    if (pending.gathering) return pending.gathering->squares;
    if (pending.kind == Kind::text && pending.request.kind == Kind::freeze)
      return to_text(frozen());
    return pending.request.kind == Kind::report && pending.kind == Kind::text ? report()
                                                                              : pending.text;
  }

  Frozen frozen() const ARTEL_REQUIRES(mutex_) {
    Frozen frozen = {.updates = kept_->updates(), .finished = cut_.iterations()};
    for (const auto& [worker, finished] : lost_)
      frozen.finished[static_cast<size_t>(worker)] = Frozen::kLost;
    frozen.shares = shares_.since(*std::ranges::min_element(cut_.iterations()));
    return frozen;
  }

  std::vector<std::byte> reply_values(Connection& connection, const Pending& pending,
                                      const Header& reply) ARTEL_REQUIRES(mutex_) {
    const Header& request = pending.request;
    const std::span<const float> all = request.state < 0
                                           ? shard().values(request.keys)
                                           : shard().state(request.state, request.keys);
    // A worker that receives values unencoded has them, so coded answers send later changes.
    if (codec_ && request.state < 0 && !pending.listed && !reply.has(masked) && !reply.has(coded))
      connection.known->set(request.keys, all);
    if (reply.has(in_place)) return place_of(connection, request, all);
    std::vector<float> wanted;
    if (pending.listed) {
      for (const uint64_t key : *pending.listed) wanted.push_back(all[key - request.keys.first]);
    } else {
      wanted.assign(all.begin(), all.end());
    }
    if (!reply.has(masked) && !reply.has(coded)) return pack_values(wanted, {}, nullptr, {});
    return connection.known->pack_changes(
        request.keys, pending.listed, wanted,
        {.masked = reply.has(masked),
         .codec = reply.has(coded) ? codec_.get() : nullptr,
         .context = {.step = request.iteration,
                     .stream = static_cast<uint64_t>(connection.worker)}});
  }

  // Workers on this machine read the values in place. Without lockstep, values may change during
  // the read, so each worker reads its own copy.
  std::vector<std::byte> place_of(Connection& connection, const Header& request,
                                  std::span<const float> all) ARTEL_REQUIRES(mutex_) {
    if (!(setup_.together && setup_.delay == 0)) all = connection.known->set(request.keys, all);
    const std::optional<uint64_t> place = group_.place_of(std::as_bytes(all));
    require(place.has_value(), ErrorKind::internal, "[ps] values are not in shared memory");
    group_.count_in_place(connection.worker, all.size_bytes(), 0);
    const auto bytes = std::as_bytes(std::span(&*place, 1));
    return {bytes.begin(), bytes.end()};
  }

  // A worker that has stopped makes the rest of its steps when the run is resumed, so it keeps its
  // lanes. Those of a lost worker go to the others.
  std::string shares(int worker, const Header& request) ARTEL_REQUIRES(mutex_) {
    return fmt::format(
        "{}",
        fmt::join(shares_.from(request.iteration, worker, request.scale,
                               [this](int w) ARTEL_REQUIRES(mutex_) { return !lost_.contains(w); }),
                  " "));
  }

  std::string report() ARTEL_REQUIRES(mutex_) {
    Report report = {.staleness = kept_->staleness, .lost = lost_};
    shard().for_each(
        [&](const Segment& segment, std::span<const float> values) ARTEL_REQUIRES(mutex_) {
          if (segment.kind != SegmentKind::weight) return;
          report.nonzeros +=
              std::count_if(values.begin(), values.end(), [](float v) { return v != 0; });
          if (penalty_ && segment.decays) report.penalty += penalty_->penalty(values);
        });
    return to_text(report);
  }

  const std::shared_ptr<comm::Group> world_;
  comm::Group& group_;  // the same
  const ServerOptions options_;
  const int range_;
  // Both exist before the threads begin. The thread of the backup receives from it without the
  // mutex; all other uses, and all members of a connection but its number, need it.
  std::optional<BackupLink> backup_;
  std::vector<std::unique_ptr<Connection>> connections_;
  Mutex mutex_;
  Condition thawed_;
  std::shared_ptr<KeptRange>& kept_ ARTEL_GUARDED_BY(mutex_);
  Setup setup_ ARTEL_GUARDED_BY(mutex_);
  std::unique_ptr<comm::Codec> codec_ ARTEL_GUARDED_BY(mutex_);
  std::optional<DelayClock> clock_ ARTEL_GUARDED_BY(mutex_);
  Cut cut_ ARTEL_GUARDED_BY(mutex_);
  std::optional<Proximal> penalty_ ARTEL_GUARDED_BY(mutex_);
  std::map<std::tuple<int64_t, uint64_t, uint64_t>, std::shared_ptr<Gathering>> gatherings_
      ARTEL_GUARDED_BY(mutex_);
  uint64_t pushes_before_ ARTEL_GUARDED_BY(mutex_) = 0;  // before the current setup
  std::map<int, int64_t> lost_ ARTEL_GUARDED_BY(mutex_);
  bool stopping_ ARTEL_GUARDED_BY(mutex_) = false;
  bool left_ ARTEL_GUARDED_BY(mutex_) = false;  // all workers have left
  LaneShares shares_ ARTEL_GUARDED_BY(mutex_);
  std::exception_ptr failure_ ARTEL_GUARDED_BY(mutex_);
};

RangeServer::RangeServer(std::shared_ptr<comm::Group> group, const ServerOptions& options,
                         const Place& place)
    : state_(std::make_unique<State>(std::move(group), options, place)) {}
RangeServer::~RangeServer() = default;

void RangeServer::run() { state_->run(); }

}  // namespace artel::ps
