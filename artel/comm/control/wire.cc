#include "artel/comm/control/wire.h"

#include <cstring>
#include <type_traits>

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
    require(rest_.empty(), ErrorKind::corrupt, "[comm control] message: got {} bytes too many",
            rest_.size());
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

}  // namespace

std::string encode(const Frame& frame) {
  std::string out;
  put(out, static_cast<uint32_t>(frame.body.size() + 1));
  put(out, frame.type);
  out += frame.body;
  return out;
}

std::optional<Frame> FrameReader::next() {
  uint32_t bytes = 0;
  if (pending_.size() < sizeof(bytes)) return std::nullopt;
  std::memcpy(&bytes, pending_.data(), sizeof(bytes));
  require(
      bytes >= 1 && bytes <= kMaxFrameBytes, ErrorKind::corrupt,
      "[comm control] message length: got {}, expected 1 to {}; is this another service's port?",
      bytes, kMaxFrameBytes);
  if (pending_.size() < sizeof(bytes) + bytes) return std::nullopt;
  const auto type = static_cast<uint8_t>(pending_[sizeof(bytes)]);
  require(type >= static_cast<uint8_t>(FrameType::hello) &&
              type <= static_cast<uint8_t>(FrameType::place),
          ErrorKind::corrupt, "[comm control] message type: got {}", type);
  Frame frame{static_cast<FrameType>(type), pending_.substr(sizeof(bytes) + 1, bytes - 1)};
  pending_.erase(0, sizeof(bytes) + bytes);
  return frame;
}

std::string to_body(const Hello& hello) {
  std::string out;
  put(out, hello.magic);
  put(out, hello.version);
  put_text(out, hello.token);
  put(out, hello.rank);
  put(out, hello.size);
  put_text(out, hello.host);
  put(out, hello.process);
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

std::string to_body(const Failure& failure) {
  std::string out;
  put(out, static_cast<uint8_t>(failure.kind));
  put_text(out, failure.cause);
  return out;
}

Hello hello_from(std::string_view body) {
  Parser parser(body);
  Hello hello;
  hello.magic = parser.take<uint32_t>();
  hello.version = parser.take<uint32_t>();
  if (hello.magic != kMagic || hello.version != kVersion) return hello;
  hello.token = parser.take_text();
  hello.rank = parser.take<int32_t>();
  hello.size = parser.take<int32_t>();
  hello.host = parser.take_text();
  hello.process = parser.take<int32_t>();
  parser.finish();
  return hello;
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
