// The messages between the ranks and rank 0 that are not data: who is there, how they are, and what
// went wrong. Little endian; every length is bounded, so that no message can make a reader allocate
// more than it received.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/error.h"

namespace artel::comm::control {

constexpr uint32_t kMagic = 0x4c545241;  // "ARTL"
constexpr uint32_t kVersion = 2;
constexpr size_t kMaxFrameBytes = 16 << 20;
constexpr int kMaxRanks = 1 << 16;
constexpr int kAnyRank = -1;    // of a worker
constexpr int kAnyServer = -2;  // of a server

enum class FrameType : uint8_t {
  hello = 1,  // rank -> hub: Hello
  refusal,    // hub -> rank: reason
  blob,       // rank -> hub: what the others shall know
  table,      // hub -> rank: Table
  beat,       // rank -> hub: phase
  news,       // hub -> rank: News
  failure,    // both: Failure
  leave,      // both: this rank closes the group in good order
  place,      // hub -> rank: the rank of one that came without, in decimal
};

struct Frame {
  FrameType type;
  std::string body;
};

// Length of type and body, type, body.
std::string encode(const Frame& frame);

// Cuts a stream into frames. Throws Error(corrupt) for a stream that cannot be one.
class FrameReader {
 public:
  void feed(std::string_view bytes) { pending_.append(bytes); }
  std::optional<Frame> next();

 private:
  std::string pending_;
};

struct Hello {
  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  std::string token;
  int32_t rank = 0;  // kAnyRank, kAnyServer: whichever is free
  int32_t size = 0;
  std::string host;
  int32_t process = 0;
};

struct Member {
  std::string host;
  int32_t process = 0;
  std::string blob;
};

struct Sign {
  float silent_seconds = 0;
  std::string phase;
  bool left = false;
};

struct Failure {
  ErrorKind kind = ErrorKind::communication;
  std::string cause;
};

std::string to_body(const Hello& hello);
std::string to_body(const std::vector<Member>& table);
std::string to_body(const std::vector<Sign>& news);
std::string to_body(const Failure& failure);

// Throw Error(corrupt) for anything but what to_body makes. A Hello of another magic or version is
// returned with its other fields empty, so that the reader can say so.
Hello hello_from(std::string_view body);
std::vector<Member> table_from(std::string_view body);
std::vector<Sign> news_from(std::string_view body);
Failure failure_from(std::string_view body);

}  // namespace artel::comm::control
