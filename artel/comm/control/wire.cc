#include "artel/comm/control/wire.h"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "artel/comm/transports/transport.h"

namespace artel::comm::control {
namespace {

template <typename T>
void put(std::string& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}

class Parser {
 public:
  explicit Parser(std::string_view body) : rest_(body) {}

  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::string take_text() { return std::string(take_bytes(take<uint32_t>())); }

  // A number of entries of at least `entry_bytes` each.
  uint32_t take_count(size_t entry_bytes) {
    const auto count = take<uint32_t>();
    require(count <= kMaxRanks && count * entry_bytes <= rest_.size(), ErrorKind::corrupt,
            "[comm control] message: got a list of {} entries in {} bytes", count, rest_.size());
    return count;
  }

  void finish() const {
    require(rest_.empty(), ErrorKind::corrupt,
            "[comm control] message: got {} unexpected bytes at the end", rest_.size());
  }

 private:
  std::string_view take_bytes(size_t bytes) {
    require(bytes <= rest_.size(), ErrorKind::corrupt,
            "[comm control] message: got {} bytes, expected {} more", rest_.size(), bytes);
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
};

void put_participant(std::string& out, const Participant& worker) {
  put(out, worker.number);
  put_text(out, worker.host);
  put(out, worker.process);
  put_text(out, worker.door);
  put(out, worker.place);
  put(out, worker.after_step);
  put(out, worker.server);
}

Participant take_participant(Parser& parser) {
  Participant worker;
  worker.number = parser.take<int32_t>();
  worker.host = parser.take_text();
  worker.process = parser.take<int32_t>();
  worker.door = parser.take_text();
  worker.place = parser.take<int32_t>();
  worker.after_step = parser.take<int64_t>();
  worker.server = parser.take<int32_t>();
  return worker;
}

}  // namespace

std::string name_of(const Participant& who) {
  return who.server < 0 ? fmt::format("worker {}", who.number)
                        : fmt::format("server {}", who.server);
}

std::string encode(const Frame& frame) {
  std::string out;
  put(out, static_cast<uint32_t>(frame.body.size() + 1));
  put(out, frame.type);
  out += frame.body;
  return out;
}

void FrameReader::feed(std::string_view bytes) {
  // Moves the rest to the front only if it is smaller than the part in front of it.
  if (read_ > pending()) {
    bytes_.erase(0, read_);
    read_ = 0;
  }
  bytes_.append(bytes);
}

std::string FrameReader::take_rest() {
  bytes_.erase(0, std::exchange(read_, 0));
  return std::exchange(bytes_, {});
}

std::optional<Frame> FrameReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(read_);
  uint32_t bytes = 0;
  if (rest.size() < sizeof(bytes)) return std::nullopt;
  std::memcpy(&bytes, rest.data(), sizeof(bytes));
  require(
      bytes >= 1 && bytes <= kMaxFrameBytes, ErrorKind::corrupt,
      "[comm control] message length: got {}, expected 1 to {}; is this another service's port?",
      bytes, kMaxFrameBytes);
  if (rest.size() < sizeof(bytes) + bytes) return std::nullopt;
  const auto type = static_cast<uint8_t>(rest[sizeof(bytes)]);
  require(type >= static_cast<uint8_t>(FrameType::hello) &&
              type <= static_cast<uint8_t>(FrameType::cut_off),
          ErrorKind::corrupt, "[comm control] message type: got {}", type);
  read_ += sizeof(bytes) + bytes;
  return Frame{static_cast<FrameType>(type),
               std::string(rest.substr(sizeof(bytes) + 1, bytes - 1))};
}

std::string to_body(const Hello& hello) {
  std::string out;
  put(out, hello.rank);
  put(out, hello.size);
  put_text(out, hello.host);
  put(out, hello.process);
  put_text(out, hello.door);
  return out;
}

std::string to_body(const DoorRequest& request) {
  std::string out;
  put(out, request.purpose);
  put(out, request.generation);
  put_participant(out, request.self);
  put_text(out, request.introduction);
  put(out, static_cast<uint32_t>(request.unreachable.size()));
  for (const int32_t number : request.unreachable) put(out, number);
  return out;
}

std::string to_body(const Roster& roster) {
  std::string out;
  put(out, roster.generation);
  put_text(out, roster.address);
  put(out, static_cast<uint32_t>(roster.members.size()));
  for (const Participant& member : roster.members) put_participant(out, member);
  put(out, static_cast<uint32_t>(roster.changes.size()));
  for (const Roster::Change& change : roster.changes) {
    put(out, change.number);
    put_text(out, change.what);
  }
  put(out, roster.next_number);
  return out;
}

std::string to_body(const std::vector<Member>& table) {
  std::string out;
  put(out, static_cast<uint32_t>(table.size()));
  for (const Member& member : table) {
    put_text(out, member.host);
    put(out, member.process);
    put_text(out, member.blob);
  }
  return out;
}

std::string to_body(const std::vector<Sign>& news) {
  std::string out;
  put(out, static_cast<uint32_t>(news.size()));
  for (const Sign& sign : news) {
    put(out, sign.silent_seconds);
    put_text(out, sign.phase);
    put(out, static_cast<uint8_t>(sign.left));
  }
  return out;
}

std::string to_body(const RankVitals& vitals) {
  std::string out;
  put(out, vitals.rank);
  put_text(out, vitals.text.substr(0, kVitalsBytes));
  return out;
}

std::string to_body(const Failure& failure) {
  std::string out;
  put(out, static_cast<uint8_t>(failure.kind));
  put_text(out, failure.cause);
  return out;
}

Hello hello_from(std::string_view body) {
  Parser parser(body);
  Hello hello;
  hello.rank = parser.take<int32_t>();
  hello.size = parser.take<int32_t>();
  hello.host = parser.take_text();
  hello.process = parser.take<int32_t>();
  hello.door = parser.take_text();
  parser.finish();
  return hello;
}

DoorRequest door_request_from(std::string_view body) {
  Parser parser(body);
  DoorRequest request;
  request.purpose = parser.take<DoorRequest::Purpose>();
  request.generation = parser.take<int64_t>();
  request.self = take_participant(parser);
  request.introduction = parser.take_text();
  request.unreachable.resize(parser.take_count(sizeof(int32_t)));
  for (int32_t& number : request.unreachable) number = parser.take<int32_t>();
  parser.finish();
  return request;
}

Roster roster_from(std::string_view body) {
  Parser parser(body);
  Roster roster;
  roster.generation = parser.take<int64_t>();
  roster.address = parser.take_text();
  roster.members.resize(parser.take_count(28));
  for (Participant& member : roster.members) member = take_participant(parser);
  roster.changes.resize(parser.take_count(8));
  for (Roster::Change& change : roster.changes) {
    change.number = parser.take<int32_t>();
    change.what = parser.take_text();
  }
  roster.next_number = parser.take<int32_t>();
  parser.finish();
  return roster;
}

std::string to_body(const std::vector<std::string>& doors) {
  std::string out;
  put(out, static_cast<uint32_t>(doors.size()));
  for (const std::string& door : doors) put_text(out, door);
  return out;
}

std::vector<std::string> doors_from(std::string_view body) {
  Parser parser(body);
  std::vector<std::string> doors(parser.take_count(4));
  for (std::string& door : doors) door = parser.take_text();
  parser.finish();
  return doors;
}

std::vector<Member> table_from(std::string_view body) {
  Parser parser(body);
  std::vector<Member> table(parser.take_count(12));
  for (Member& member : table) {
    member.host = parser.take_text();
    member.process = parser.take<int32_t>();
    member.blob = parser.take_text();
  }
  parser.finish();
  return table;
}

std::vector<Sign> news_from(std::string_view body) {
  Parser parser(body);
  std::vector<Sign> news(parser.take_count(9));
  for (Sign& sign : news) {
    sign.silent_seconds = parser.take<float>();
    sign.phase = parser.take_text();
    sign.left = parser.take<uint8_t>() != 0;
  }
  parser.finish();
  return news;
}

RankVitals vitals_from(std::string_view body) {
  Parser parser(body);
  RankVitals vitals;
  vitals.rank = parser.take<int32_t>();
  vitals.text = parser.take_text();
  parser.finish();
  require(vitals.text.size() <= kVitalsBytes, ErrorKind::corrupt,
          "[comm control] vitals: got {} bytes, expected at most {}", vitals.text.size(),
          kVitalsBytes);
  return vitals;
}

Failure failure_from(std::string_view body) {
  Parser parser(body);
  Failure failure;
  const auto kind = parser.take<uint8_t>();
  require(kind <= static_cast<uint8_t>(ErrorKind::internal), ErrorKind::corrupt,
          "[comm control] failure kind: got {}", kind);
  failure.kind = static_cast<ErrorKind>(kind);
  failure.cause = parser.take_text();
  parser.finish();
  return failure;
}

}  // namespace artel::comm::control
