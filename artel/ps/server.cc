#include "artel/ps/server.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/comm/balance.h"
#include "artel/ps/contribution.h"
#include "artel/ps/delay_clock.h"
#include "artel/ps/filters/key_cache.h"
#include "artel/ps/filters/value_packing.h"
#include "artel/ps/gathering.h"
#include "artel/ps/known_values.h"
#include "artel/ps/messages.h"
#include "artel/ps/report.h"
#include "artel/ps/shard.h"
#include "artel/ps/squares.h"

namespace artel::ps {

class Server::State {
 public:
  State(comm::Group& group, ServerOptions options) : group_(group), options_(std::move(options)) {
    require(options_.workers >= 1 && options_.workers <= group.rank(), ErrorKind::invalid_argument,
            "[ps] server: got {} workers before rank {}, expected 1 to {}", options_.workers,
            group.rank(), group.rank());
    for (int worker = 0; worker < options_.workers; ++worker)
      connections_.push_back(std::make_unique<Connection>(group, worker));
  }

  void run() {
    std::vector<std::thread> threads;
    for (const auto& connection : connections_)
      threads.emplace_back([this, &connection] { serve(*connection); });
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // An answer that waits for its turn, and for the clock.
  struct Pending {
    Header request;
    const std::vector<uint64_t>* listed = nullptr;
    std::shared_ptr<Gathering> gathering;  // to wait for
    std::string text;
    Kind kind = Kind::done;
  };

  struct Connection {
    Connection(comm::Group& group, int worker)
        : worker(worker), outbox(group, worker, kReplyTag), lists(kMostKeys) {}
    int worker;
    Outbox outbox;
    KnownLists lists;
    std::deque<std::vector<uint64_t>> passing_lists;  // of pending requests
    std::deque<Pending> pending;
    std::optional<KnownValues> known;  // since the setup
  };

  int number() const { return group_.rank() - options_.workers; }

  // The thread of one worker.
  void serve(Connection& connection) {
    try {
      while (true) {
        Message message = receive_message(group_, connection.worker, kRequestTag, true);
        const std::lock_guard lock(mutex_);
        try {
          handle(connection, message);
        } catch (const Error& error) {
          refuse(connection, message.header, error);
        }
        answer_all();
        if (message.header.kind == Kind::leave) return;
      }
    } catch (const Error& error) {
      const std::lock_guard lock(mutex_);
      if (group_.has_left(connection.worker))
        lose(connection);
      else if (!failure_)
        failure_ = std::current_exception();
    } catch (...) {
      group_.abort(fmt::format("server {} failed", number()));
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void refuse(Connection& connection, const Header& request, const Error& error) {
    connection.pending.push_back(
        {.request = request,
         .text = fmt::format("server {} refused the {} of worker {} at iteration {}: {}", number(),
                             to_string(request.kind), connection.worker, request.iteration,
                             error.what()),
         .kind = Kind::refusal});
  }

  void lose(Connection& connection) {
    if (!clock_ || !clock_->present(connection.worker)) return;
    if (setup_.together && setup_.lanes != options_.workers)
      group_.abort(fmt::format("worker {} was lost while all went in step", connection.worker));
    const int64_t finished = clock_->finished(connection.worker);
    lost_[connection.worker] = finished;
    connection.pending.clear();
    leave(connection.worker);
    const std::string line = fmt::format(
        "server {}: worker {} was lost after iteration {}; the others go on without its part of "
        "the data",
        number(), connection.worker, finished);
    if (options_.note)
      options_.note(line);
    else
      log(LogLevel::warning, "{}", line);
    answer_all();
  }

  void leave(int worker) {
    clock_->drop(worker);
    settle_complete();
  }

  void handle(Connection& connection, Message& message) {
    const Header& header = message.header;
    connection.outbox.forget(header.received);
    if (header.kind == Kind::setup) return set_up(connection, message);
    require(clock_.has_value(), ErrorKind::invalid_argument,
            "[ps] got a request before worker 0 said what to serve");
    require(shard_->keys().contains(header.keys), ErrorKind::invalid_argument,
            "[ps] keys: got {} to {}, expected some of {} to {}", header.keys.first,
            header.keys.last, shard_->keys().first, shard_->keys().last);
    if (header.has(stop)) stopping_ = true;
    Pending pending{.request = header, .listed = list_of(connection, message)};
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
        pending.text = report();
        pending.kind = Kind::text;
        break;
      case Kind::shares:
        pending.text = shares(connection.worker, header);
        pending.kind = Kind::text;
        break;
      case Kind::leave:
        leave(connection.worker);
        return;
      default:
        fail(ErrorKind::invalid_argument, "[ps] a {} is no request", to_string(header.kind));
    }
    if (header.kind == Kind::pull || header.kind == Kind::exchange) pending.kind = Kind::values;
    connection.pending.push_back(std::move(pending));
  }

  void set_up(Connection& connection, const Message& message) {
    require(connection.worker == 0 && gatherings_.empty(), ErrorKind::invalid_argument,
            "[ps] setup: expected it of worker 0, between iterations");
    setup_ = setup_from_text(message.value_text());
    codec_ = setup_.compress.empty() ? nullptr : comm::make_codec(setup_.compress);
    if (!shard_) {
      const auto allocate = [this](size_t bytes) { return group_.allocate(bytes); };
      shard_.emplace(setup_, make_rule(setup_.rule, options_.rules), allocate);
      for (const auto& other : connections_) other->known.emplace(setup_.keys, allocate);
    }
    clock_.emplace(options_.workers, setup_.delay, setup_.finished);
    pushes_before_ = pushes_;
    if (setup_.rule.contains("name") && setup_.rule.at("name") == "proximal")
      penalty_ = proximal_from_options(setup_.rule);
    layout_ = comm::LaneLayout::even(setup_.lanes, options_.workers);
    seconds_.assign(static_cast<size_t>(options_.workers), 0);
    connection.pending.push_back({.request = message.header});
  }

  // The keys of a request that lists them, checked; null: all of its range.
  const std::vector<uint64_t>* list_of(Connection& connection, Message& message) {
    const Header& header = message.header;
    if (header.signature == 0) {
      require(message.keys.empty(), ErrorKind::invalid_argument,
              "[ps] keys: got a list without its signature");
      return nullptr;
    }
    static const std::vector<uint64_t> kNoKeys;
    if (header.signature == signature_of(kNoKeys)) return &kNoKeys;
    if (message.keys.empty()) {
      const std::vector<uint64_t>& known = connection.lists.find(header.signature);
      require(known.front() >= header.keys.first && known.back() < header.keys.last,
              ErrorKind::invalid_argument, "[ps] keys: the list is not of keys {} to {}",
              header.keys.first, header.keys.last);
      return &known;
    }
    require(std::is_sorted(message.keys.begin(), message.keys.end(), std::less_equal<>()) &&
                message.keys.front() >= header.keys.first && message.keys.back() < header.keys.last,
            ErrorKind::invalid_argument,
            "[ps] keys: got a list that is not ascending, or not of {} to {}", header.keys.first,
            header.keys.last);
    if (header.has(remember))
      return &connection.lists.remember(header.signature, std::move(message.keys));
    return &connection.passing_lists.emplace_back(std::move(message.keys));
  }

  void assign(const Header& header, std::span<const std::byte> bytes) {
    const std::span<float> target =
        header.state < 0 ? shard_->values(header.keys) : shard_->state(header.state, header.keys);
    require(bytes.size() == target.size_bytes(), ErrorKind::invalid_argument,
            "[ps] assign: got {} bytes, expected {} for {} keys", bytes.size(), target.size_bytes(),
            target.size());
    if (!bytes.empty()) std::memcpy(target.data(), bytes.data(), bytes.size());
    if (!codec_ || header.state >= 0) return;
    // Workers have the assigned values; coded answers tell them of changes only.
    for (const auto& other : connections_) other->known->set(header.keys, target);
  }

  void contribute(Connection& connection, Message& message, Pending& pending) {
    const Header& header = message.header;
    if (header.has(held)) check_held(header);
    Contribution contribution = read_contribution(message, pending.listed, group_, codec_.get());
    require_finite(contribution, header.keys,
                   [this](uint64_t key) { return shard_->name_of(key); });
    const uint64_t version = this->version();
    if (header.has(finishes)) clock_->finish(connection.worker, header.iteration);
    if (setup_.together) {
      gather(header, std::move(contribution), pending);
    } else {
      apply_at_once(header, contribution);
    }
    if (!header.has(finishes)) return;
    ++pushes_;
    ++staleness_[static_cast<int64_t>(version - std::min(version, header.version))];
  }

  void check_held(const Header& header) {
    require(setup_.together && header.kind == Kind::push, ErrorKind::invalid_argument,
            "[ps] {}: only pushes that are added to those of others can be held back",
            to_string(header.kind));
    for_each_weight(header.keys, [&](const Segment& segment) {
      require(header.keys.contains(segment.keys), ErrorKind::invalid_argument,
              "[ps] push of keys {} to {}: expected all of '{}', whose squares are wanted",
              header.keys.first, header.keys.last, segment.name);
    });
  }

  // Calls visit(segment) for the weights that have some of the keys, all of which are here.
  void for_each_weight(const KeyRange& keys, const auto& visit) {
    shard_->for_each([&](const Segment& segment, std::span<const float>) {
      if (segment.kind == SegmentKind::weight && !intersection(segment.keys, keys).empty())
        visit(segment);
    });
  }

  void gather(const Header& header, Contribution contribution, Pending& pending) {
    const auto key = std::make_tuple(header.iteration, header.keys.first, header.keys.last);
    std::shared_ptr<Gathering>& gathering = gatherings_[key];
    if (!gathering) {
      gathering = std::make_shared<Gathering>(header.keys, setup_.lanes);
      gathering->step = {header.iteration, header.learning_rate, header.scale};
      gathering->to_state = header.has(to_state);
      gathering->held = header.has(held);
    }
    gathering->add(std::move(contribution));
    pending.gathering = gathering;
    if (gathering->held) pending.kind = Kind::text;
    settle_complete();
  }

  // In the order of iterations, so that updates of one range never overtake each other.
  void settle_complete() {
    // Where the lanes are workers, those of lost workers are not waited for.
    const auto is_gone = [this](int lane) {
      return setup_.lanes == options_.workers && !clock_->present(lane);
    };
    for (auto at = gatherings_.begin(); at != gatherings_.end();) {
      Gathering& gathering = *at->second;
      if (!gathering.settled && gathering.complete(is_gone)) settle(gathering);
      const bool applied = gathering.settled && gathering.squares.empty();
      at = applied ? gatherings_.erase(at) : std::next(at);
    }
  }

  // Applies a whole sum, or holds it back until its release if there are weights in it.
  void settle(Gathering& gathering) {
    if (gathering.held) gathering.squares = squares_of(gathering);
    if (gathering.squares.empty()) apply(gathering);
    gathering.settled = true;
  }

  std::string squares_of(const Gathering& gathering) {
    Squares squares;
    for_each_weight(gathering.keys(), [&](const Segment& segment) {
      squares[segment.keys.first] = gathering.sum_of_squares(segment.keys);
    });
    return to_text(squares);
  }

  // All workers know the same squares and say the same: the first of them is obeyed.
  void release(const Header& header) {
    const auto found = gatherings_.find({header.iteration, header.keys.first, header.keys.last});
    if (found == gatherings_.end()) return;
    Gathering& gathering = *found->second;
    require(gathering.settled, ErrorKind::invalid_argument,
            "[ps] pull of keys {} to {}: others have not pushed yet what it is to release",
            header.keys.first, header.keys.last);
    gathering.step.scale = header.scale;
    apply(gathering);
    gatherings_.erase(found);
  }

  void apply(const Gathering& gathering) {
    const uint64_t most = std::max<uint64_t>(1, shard_->most_keys_at_once());
    std::vector<float> sum(std::min(most, gathering.keys().size()));
    for (const KeyRange& part : gathering.ranges(most)) {
      const std::span<float> total = std::span(sum).first(part.size());
      gathering.sum(part.first, total);
      if (gathering.to_state) {
        const std::span<float> state = shard_->state(0, part);
        for (size_t i = 0; i < total.size(); ++i) state[i] += total[i];
      } else {
        const int all = setup_.observations > 0 ? setup_.observations : setup_.lanes;
        shard_->apply(part, total, gathering.step, all, all);
      }
    }
  }

  void apply_at_once(const Header& header, const Contribution& contribution) {
    require(contribution.partials.size() == 1, ErrorKind::invalid_argument,
            "[ps] push: got {} partial sums, expected one", contribution.partials.size());
    const Step step = {static_cast<int64_t>(pushes_) + 1, header.learning_rate, header.scale};
    const int own = contribution.lanes.size();
    const float* values = contribution.partials.front();
    if (!contribution.listed)
      return shard_->apply(header.keys, {values, header.keys.size()}, step, setup_.lanes, own);
    // Runs of neighbouring keys.
    const std::vector<uint64_t>& keys = *contribution.listed;
    for (size_t begin = 0; begin < keys.size();) {
      size_t end = begin + 1;
      while (end < keys.size() && keys[end] == keys[end - 1] + 1) ++end;
      shard_->apply({keys[begin], keys[end - 1] + 1}, {values + begin, end - begin}, step,
                    setup_.lanes, own);
      begin = end;
    }
  }

  // Updates so far: whole iterations, or single pushes.
  uint64_t version() const {
    return setup_.together ? static_cast<uint64_t>(clock_->slowest())
                           : static_cast<uint64_t>(setup_.finished) + pushes_ - pushes_before_;
  }

  // Sends what the clock allows now.
  void answer_all() {
    for (const auto& connection : connections_)
      while (!connection->pending.empty() && may_answer(*connection)) {
        answer(*connection, connection->pending.front());
        if (connection->pending.front().listed && !connection->passing_lists.empty() &&
            connection->pending.front().listed == &connection->passing_lists.front())
          connection->passing_lists.pop_front();
        connection->pending.pop_front();
      }
  }

  bool may_answer(const Connection& connection) const {
    const Pending& pending = connection.pending.front();
    if (pending.kind == Kind::refusal || !clock_) return true;
    if (pending.gathering && !pending.gathering->settled) return false;
    if (pending.request.has(after_all) && clock_->slowest() < pending.request.iteration)
      return false;
    const bool begins_another = pending.request.has(finishes) && !pending.gathering;
    return !begins_another || clock_->may_start(connection.worker);
  }

  void answer(Connection& connection, const Pending& pending) {
    Header reply{.kind = pending.kind,
                 .request = pending.request.request,
                 .flags = stopping_ ? uint32_t{stop} : 0,
                 .iteration = pending.request.iteration,
                 .version = clock_ ? version() : 0,
                 .keys = pending.request.keys};
    if (pending.kind != Kind::values) {
      const std::string& said = pending.gathering ? pending.gathering->squares : pending.text;
      const auto text = std::as_bytes(std::span(said));
      return connection.outbox.send(reply, {text.begin(), text.end()});
    }
    reply.flags |= pending.request.flags & (in_place | masked | coded);
    connection.outbox.send(reply, reply_values(connection, pending, reply));
  }

  std::vector<std::byte> reply_values(Connection& connection, const Pending& pending,
                                      const Header& reply) {
    const Header& request = pending.request;
    const std::span<const float> all = request.state < 0
                                           ? shard_->values(request.keys)
                                           : shard_->state(request.state, request.keys);
    // A worker that gets the values themselves knows them: coded answers tell it of later changes.
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

  // Workers of this machine read the values where they are. Unless all go in step, they change
  // meanwhile: then it is a copy for the worker alone.
  std::vector<std::byte> place_of(Connection& connection, const Header& request,
                                  std::span<const float> all) {
    if (!(setup_.together && setup_.delay == 0)) all = connection.known->set(request.keys, all);
    const std::optional<uint64_t> place = group_.place_of(std::as_bytes(all));
    require(place.has_value(), ErrorKind::internal, "[ps] values are not in shared memory");
    const auto bytes = std::as_bytes(std::span(&*place, 1));
    return {bytes.begin(), bytes.end()};
  }

  // Whoever asks first for the shares from an iteration on makes them what they are for all.
  std::string shares(int worker, const Header& request) {
    seconds_[static_cast<size_t>(worker)] = request.scale;
    const auto [decided, is_new] = shares_.try_emplace(request.iteration, layout_);
    if (is_new) {
      std::vector<double> seconds = seconds_;
      for (int w = 0; w < options_.workers; ++w)
        if (!clock_->present(w)) seconds[w] = std::numeric_limits<double>::infinity();
      if (std::find(seconds.begin(), seconds.end(), 0.0) == seconds.end())
        layout_ = comm::balanced_lanes(layout_, seconds);
      decided->second = layout_;
    }
    return fmt::format("{}", fmt::join(decided->second.lanes_of_rank, " "));
  }

  std::string report() {
    Report report = {.staleness = staleness_, .lost = lost_};
    shard_->for_each([&](const Segment& segment, std::span<const float> values) {
      if (segment.kind != SegmentKind::weight) return;
      report.nonzeros +=
          std::count_if(values.begin(), values.end(), [](float v) { return v != 0; });
      if (penalty_ && segment.decays) report.penalty += penalty_->penalty(values);
    });
    return to_text(report);
  }

  comm::Group& group_;
  ServerOptions options_;
  std::mutex mutex_;  // of all that follows
  Setup setup_;
  std::unique_ptr<comm::Codec> codec_;
  std::optional<Shard> shard_;
  std::optional<DelayClock> clock_;
  std::optional<Proximal> penalty_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::map<std::tuple<int64_t, uint64_t, uint64_t>, std::shared_ptr<Gathering>> gatherings_;
  uint64_t pushes_ = 0;         // that ended an iteration of their worker
  uint64_t pushes_before_ = 0;  // the setup that holds now
  std::map<int64_t, int64_t> staleness_;
  std::map<int, int64_t> lost_;
  bool stopping_ = false;
  comm::LaneLayout layout_;
  std::vector<double> seconds_;                 // that each worker needs for a lane
  std::map<int64_t, comm::LaneLayout> shares_;  // by the iteration from which they hold
  std::exception_ptr failure_;
};

Server::Server(comm::Group& group, ServerOptions options)
    : state_(std::make_unique<State>(group, std::move(options))) {}
Server::~Server() = default;

void Server::run() { state_->run(); }

}  // namespace artel::ps
