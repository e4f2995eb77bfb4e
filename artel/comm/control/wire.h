// Control messages between the ranks and rank 0: members, their activity, and failures. Little
// endian. Every length is bounded, so no message can make a reader allocate more than it received.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/error.h"
#include "artel/comm/connection/handshake.h"
#include "artel/comm/control/participant.h"

namespace artel::comm::control {

constexpr uint32_t kMagic = 0x4c545241;  // "ARTL"
constexpr uint32_t kVersion = 12;
constexpr Protocol kProtocol = {kMagic, kVersion, "protocol"};
constexpr size_t kMaxFrameBytes = 16 << 20;
constexpr int kMaxRanks = 1 << 16;
constexpr int kAnyRank = -1;    // of a worker
constexpr int kAnyServer = -2;  // of a server

enum class FrameType : uint8_t {
  hello = 1,  // rank -> hub: the answer to its challenge, with a Hello
  refusal,    // hub -> rank: reason
  blob,       // rank -> hub: this rank's text for the others
  table,      // hub -> rank: Table
  beat,       // rank -> hub: phase; door -> worker: the number of the leader that it knows, or -1
  news,       // hub -> rank: News
  failure,    // both: Failure
  leave,      // both: this rank leaves the group in good order
  place,      // hub -> rank: the rank assigned to one that had none, in decimal
  request,    // worker -> door: the answer to its challenge, with a DoorRequest
  roster,     // door -> worker: Roster
  doors,      // hub or door -> newcomer: where the workers of a run that is under way are found
  vitals,     // rank -> hub -> rank 0: RankVitals
  challenge,  // hub or door -> caller (comm/connection/handshake.h)
  proof,      // hub or door -> authenticated caller
  agree,      // worker -> door: accepts the roster it received
  cut_off,    // door -> worker: why it has to leave: a path to another member is cut
};

struct Frame {
  FrameType type;
  std::string body;
};

// Length of type and body, type, body.
std::string encode(const Frame& frame);

// Cuts a stream into frames. Throws Error(corrupt) for an invalid stream.
// The cost is linear in the bytes fed, however small the frames are.
class FrameReader {
 public:
  void feed(std::string_view bytes);
  std::optional<Frame> next();
  // Bytes that are not yet part of a frame that next() returned.
  size_t pending() const { return bytes_.size() - read_; }
  // Moves the pending bytes out, for the reader of the remaining stream.
  std::string take_rest();

 private:
  std::string bytes_;
  size_t read_ = 0;  // bytes of `bytes_` that next() has returned
};

struct Hello {
  int32_t rank = 0;  // or kAnyRank, kAnyServer
  int32_t size = 0;
  std::string host;
  int32_t process = 0;
  std::string door;  // address at which it can be reached later; empty if none
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

struct RankVitals {
  int32_t rank = 0;
  std::string text;  // at most kVitalsBytes
};

struct Failure {
  ErrorKind kind = ErrorKind::communication;
  std::string cause;
};

// A worker's message at another worker's door.
struct DoorRequest {
  enum class Purpose : uint8_t {
    enter,    // a member: to be part of the next membership
    probe,    // a member: tests whether the door answers
    join,     // a newcomer: to become a member
    leave,    // a member: the others stop waiting for it
    dismiss,  // any process with the token: asks this worker to leave
  };
  Purpose purpose = Purpose::enter;
  int64_t generation = 0;  // of its membership; -1 without one
  Participant self;
  std::string introduction = {};  // of a newcomer: its configuration
  // Numbers of members that live, but do not answer this one.
  std::vector<int32_t> unreachable = {};
};

// The next membership: its members by rank, the address of its group, and the changes.
struct Roster {
  struct Change {
    int32_t number = 0;  // of a worker
    std::string what;    // "ended", "joins"
  };
  int64_t generation = 0;
  std::string address;
  std::vector<Participant> members;
  std::vector<Change> changes;
  int32_t next_number = 0;  // for the next newcomer
};

// The doors of a running training. Thrown at a process that arrives where its workers first met.
class UnderWay : public Error {
 public:
  explicit UnderWay(std::vector<std::string> the_doors)
      : Error(ErrorKind::communication, "[comm] the run has already begun"),
        doors(std::move(the_doors)) {}
  std::vector<std::string> doors;
};

std::string to_body(const DoorRequest& request);
std::string to_body(const Roster& roster);
std::string to_body(const Hello& hello);
std::string to_body(const std::vector<Member>& table);
std::string to_body(const std::vector<Sign>& news);
std::string to_body(const RankVitals& vitals);
std::string to_body(const Failure& failure);
std::string to_body(const std::vector<std::string>& doors);

// Throw Error(corrupt) for anything that to_body cannot have produced.
Hello hello_from(std::string_view body);
DoorRequest door_request_from(std::string_view body);
Roster roster_from(std::string_view body);
std::vector<Member> table_from(std::string_view body);
std::vector<Sign> news_from(std::string_view body);
RankVitals vitals_from(std::string_view body);
Failure failure_from(std::string_view body);
std::vector<std::string> doors_from(std::string_view body);

}  // namespace artel::comm::control
