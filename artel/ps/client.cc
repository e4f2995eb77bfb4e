#include "artel/ps/client.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <sstream>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/base/time.h"
#include "artel/ps/filters/value_packing.h"

namespace artel::ps {
namespace {

bool everyone_answers(const Request& request) {
  return (request.flags & (finishes | after_all)) != 0 || request.kind == Kind::report ||
         request.kind == Kind::leave;
}

bool carries_values(Kind kind) {
  return kind == Kind::push || kind == Kind::exchange || kind == Kind::assign;
}

}  // namespace

Client::Client(std::shared_ptr<comm::Group> group, int workers, ShardMap map, uint64_t seed)
    : group_(std::move(group)), workers_(workers), map_(std::move(map)), seed_(seed) {
  require(workers >= 1 && workers < group_->size(), ErrorKind::invalid_argument,
          "[ps] group: got {} ranks, expected {} workers and at least one server", group_->size(),
          workers);
  const size_t servers = static_cast<size_t>(group_->size() - workers);
  set_places(place_ranges(map_.servers(), std::vector<std::vector<Holding>>(servers), 1));
  const comm::SharedBytes probe = group_->allocate(64);
  shares_memory_ = group_->place_of({probe.get(), 64}).has_value();
}

void Client::set_places(const std::vector<Placement>& places) {
  const MutexLock lock(mutex_);
  connections_.clear();
  for (int range = 0; range < map_.servers(); ++range)
    connections_.push_back(std::make_unique<Connection>(
        group_, workers_ + places[static_cast<size_t>(range)].primary, range));
}

void Client::set_version(uint64_t version) {
  const MutexLock lock(mutex_);
  for (const auto& connection : connections_) connection->version = version;
}

std::vector<Placement> Client::place(int replicas) {
  std::deque<Outbox> outboxes;
  for (int server = workers_; server < group_->size(); ++server)
    outboxes.emplace_back(group_, server, kPlaceTag);
  const auto ask_all = [&](std::string_view text) {
    std::vector<std::string> answers;
    const auto bytes = std::as_bytes(std::span(text));
    for (Outbox& outbox : outboxes)
      outbox.send(Header{.kind = Kind::text}, {bytes.begin(), bytes.end()});
    for (int server = workers_; server < group_->size(); ++server)
      answers.emplace_back(receive_message(*group_, server, kPlacedTag, false).value_text());
    return answers;
  };
  std::vector<std::vector<Holding>> held;
  for (const std::string& text : ask_all("what do you have?"))
    held.push_back(holdings_from_text(text));
  const std::vector<Placement> places = place_ranges(map_.servers(), held, replicas);
  ask_all(to_text(places));
  ask_all("begin");  // all servers have their ranges
  for (Outbox& outbox : outboxes) outbox.forget(std::numeric_limits<uint64_t>::max());
  set_places(places);
  placed_ = true;
  return places;
}

void Client::set_codec(const std::string& name) {
  codec_ = name.empty() ? nullptr : comm::make_codec(name);
}

void Client::set_up(const Setup& setup) {
  if (!placed_) place(1);
  wait(start_texts(Kind::setup,
                   [&](int server) {
                     Setup own = setup;
                     own.keys = map_.range(server);
                     return to_text(own);
                   },
                   {}));
}

Client::Ticket Client::start_texts(Kind kind, const std::function<std::string(int)>& text,
                                   const std::function<void(std::string_view)>& sink) {
  Ticket ticket;
  for (int server = 0; server < map_.servers(); ++server) {
    const std::string own = text(server);
    const auto bytes = std::as_bytes(std::span(own));
    const uint64_t here = map_.range(server).first;
    const MutexLock lock(mutex_);
    Connection& connection = *connections_[static_cast<size_t>(server)];
    connection.outbox.send(
        Header{.kind = kind, .received = connection.answers, .keys = {here, here}},
        {bytes.begin(), bytes.end()});
    connection.expected.push_back({.text_sink = sink});
    ticket.push_back(++connection.requests);
  }
  return ticket;
}

// A contribution that has reached one server is in flight to all others, so each server waits for
// the contributions that any server has.
Frozen Client::freeze() {
  Frozen least;
  for (int round = 0; round < 2; ++round) {
    Frozen all;
    wait(start_texts(
        Kind::freeze, [&](int) { return to_text(least); },
        [&](std::string_view text) { all.merge(frozen_from_text(text)); }));
    least = all;
  }
  return least;
}

void Client::thaw() {
  start_texts(Kind::thaw, [](int) { return ""; }, {});
}

Client::Ticket Client::start(const Request& request) {
  Ticket ticket(connections_.size(), 0);
  const MutexLock lock(mutex_);
  for (int server = 0; server < map_.servers(); ++server) {
    const KeyRange part = intersection(request.keys, map_.range(server));
    Connection& connection = *connections_[static_cast<size_t>(server)];
    auto& number = ticket[static_cast<size_t>(server)];
    if (part.empty()) {
      const uint64_t here = map_.range(server).first;
      if (everyone_answers(request)) number = send(connection, request, {here, here}, 0, {});
    } else if (!request.list) {
      number = send(connection, request, part, part.first - request.keys.first, {});
    } else {
      const auto& all = *request.list;
      const auto from = std::lower_bound(all.begin(), all.end(), part.first);
      const auto to = std::lower_bound(from, all.end(), part.last);
      const auto offset = static_cast<size_t>(from - all.begin());
      const auto list = all.subspan(offset, static_cast<size_t>(to - from));
      if (!list.empty() || everyone_answers(request) || (request.flags & same_list) != 0)
        number = send(connection, request, part, offset, list);
    }
  }
  return ticket;
}

uint64_t Client::send(Connection& connection, const Request& request, const KeyRange& keys,
                      size_t offset, std::span<const uint64_t> list) {
  Header header{.kind = request.kind,
                .request = static_cast<uint32_t>(connection.requests),
                .flags = request.flags,
                .received = connection.answers,
                .iteration = request.iteration,
                .version = connection.version,
                .keys = keys,
                .first_lane = request.lanes.first,
                .last_lane = request.lanes.last,
                .state = request.state,
                .learning_rate = request.learning_rate,
                .scale = request.scale};
  std::span<const uint64_t> sent_list = list;
  if (request.list) {
    header.signature = signature_of(list);
    if (header.has(remember) && !connection.lists.must_send(header.signature)) sent_list = {};
  }
  const size_t count = request.list ? list.size() : keys.size();
  send_values(connection, header, request, offset, count, sent_list);
  connection.expected.push_back(
      {offset, count, request.sink, request.text_sink, header.has(after_all)});
  return ++connection.requests;
}

void Client::send_values(Connection& connection, Header header, const Request& request,
                         size_t offset, size_t count, std::span<const uint64_t> list) {
  const bool packs = header.has(masked) || header.has(coded);
  const bool dense = !request.list;
  std::vector<std::byte> bytes;
  if (!carries_values(header.kind)) {
    if (header.kind == Kind::pull && dense && shares_memory_ && !packs && header.state < 0)
      header.flags |= in_place;
  } else if (packs) {
    require(request.values.size() == 1, ErrorKind::invalid_argument,
            "[ps] push: got {} sums to pack, expected one", request.values.size());
    const auto keep = header.has(masked) ? request.keep.subspan(offset, count) : request.keep;
    const auto lost = request.lost.empty() ? request.lost : request.lost.subspan(offset, count);
    bytes = pack_values(
        {request.values.front() + offset, count}, keep, header.has(coded) ? codec_.get() : nullptr,
        {.seed = seed_, .step = request.iteration, .stream = static_cast<uint64_t>(worker())},
        lost);
  } else {
    header.partials = std::max(1, static_cast<int>(request.values.size()));
    // Pushed values are not copied if the server can read them in place.
    std::vector<uint64_t> places;
    for (const float* values : request.values) {
      const auto part = std::as_bytes(std::span(values + offset, count));
      const auto place =
          dense && header.kind != Kind::assign ? group_->place_of(part) : std::nullopt;
      if (place) places.push_back(*place);
    }
    if (!places.empty() && places.size() == request.values.size()) {
      header.flags |= in_place;
      const auto raw = std::as_bytes(std::span(places));
      bytes.assign(raw.begin(), raw.end());
    } else if (request.values.size() == 1) {
      const auto part = std::as_bytes(std::span(request.values.front() + offset, count));
      traffic_.sent_bytes += static_cast<int64_t>(sizeof(Header) + list.size_bytes() + part.size());
      return connection.outbox.send(header, list, part);
    } else {
      for (const float* values : request.values) {
        const auto part = std::as_bytes(std::span(values + offset, count));
        bytes.insert(bytes.end(), part.begin(), part.end());
      }
    }
  }
  const size_t read_in_place =
      header.has(in_place) ? count * sizeof(float) * request.values.size() : 0;
  group_->count_in_place(connection.rank, read_in_place, 0);
  traffic_.sent_bytes += static_cast<int64_t>(
      sizeof(Header) + list.size_bytes() + (header.has(in_place) ? read_in_place : bytes.size()));
  connection.outbox.send(header, list, std::move(bytes));
}

void Client::wait(const Ticket& ticket) {
  const Clock::time_point begin = Clock::now();
  for (size_t server = 0; server < ticket.size(); ++server)
    while (connections_[server]->answers < ticket[server]) receive(*connections_[server]);
  const MutexLock lock(mutex_);
  traffic_.waited_seconds += seconds_between(begin, Clock::now());
}

Client::Traffic Client::traffic() const {
  const MutexLock lock(mutex_);
  return traffic_;
}

void Client::receive(Connection& connection) {
  const bool patient = [&] {
    const MutexLock lock(mutex_);
    return !connection.expected.empty() && connection.expected.front().patient;
  }();
  const Message message =
      receive_message(*group_, connection.rank, reply_tag(connection.range), patient);
  Expected expected;
  {
    const MutexLock lock(mutex_);
    ++connection.answers;
    connection.outbox.forget(connection.answers);
    require(!connection.expected.empty(), ErrorKind::corrupt,
            "[ps] rank {} sent an unexpected answer", connection.rank);
    expected = std::move(connection.expected.front());
    connection.expected.pop_front();
    connection.version = message.header.version;
    stopping_ |= message.header.has(stop);
    const bool elsewhere = message.header.has(in_place);
    traffic_.received_bytes += static_cast<int64_t>(
        sizeof(Header) + (elsewhere ? expected.count * sizeof(float) : message.values.size()));
  }
  switch (message.header.kind) {
    case Kind::refusal:
      fail(ErrorKind::invalid_argument, "{}", message.value_text());
    case Kind::text:
      if (expected.text_sink) expected.text_sink(message.value_text());
      break;
    case Kind::values:
      if (expected.sink) hand_out(connection, message, expected);
      break;
    default:
      break;
  }
}

void Client::hand_out(Connection& connection, const Message& message, const Expected& expected) {
  const Header& header = message.header;
  if (header.has(in_place)) {
    uint64_t place = 0;
    require(message.values.size() == sizeof place, ErrorKind::corrupt,
            "[ps] reply of rank {}: got {} bytes of a place", connection.rank,
            message.values.size());
    std::memcpy(&place, message.values.data(), sizeof place);
    const std::byte* data = group_->at_place(place, expected.count * sizeof(float));
    require(data != nullptr, ErrorKind::corrupt, "[ps] reply of rank {}: place {} is not shared",
            connection.rank, place);
    group_->count_in_place(connection.rank, 0, expected.count * sizeof(float));
    return expected.sink(expected.offset, {reinterpret_cast<const float*>(data), expected.count},
                         false);
  }
  const bool change = header.has(masked) || header.has(coded);
  const std::vector<float> values =
      unpack_values(message.values, expected.count, header.has(masked),
                    header.has(coded) ? codec_.get() : nullptr);
  expected.sink(expected.offset, values, change);
}

std::vector<int> Client::shares(int64_t iteration, double seconds) {
  const uint64_t here = map_.range(0).first;
  std::vector<int> lanes;
  Ticket ticket(connections_.size(), 0);
  {
    const MutexLock lock(mutex_);
    ticket[0] = send(*connections_.front(),
                     {.kind = Kind::shares,
                      .iteration = iteration,
                      .scale = static_cast<float>(seconds),
                      .text_sink =
                          [&](std::string_view text) {
                            std::istringstream words{std::string(text)};
                            for (int count = 0; words >> count;) lanes.push_back(count);
                          }},
                     {here, here}, 0, {});
  }
  wait(ticket);
  return lanes;
}

Client::Ticket Client::start_report(Report& report) {
  return start({.kind = Kind::report, .keys = {}, .text_sink = [&report](std::string_view text) {
                  report += report_from_text(text);
                }});
}

Report Client::report() {
  Report report;
  wait(start_report(report));
  return report;
}

void Client::leave() {
  start({.kind = Kind::leave, .keys = {}});
  for (const auto& connection : connections_)
    connection->outbox.forget(std::numeric_limits<uint64_t>::max());
}

}  // namespace artel::ps
