#include "artel/cluster/vitals.h"
#include "artel/comm/control/socket.h"
#include "artel/comm/control/wire.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::control_message {
namespace {

using comm::control::Frame;
using comm::control::FrameType;
using comm::control::to_body;

// Every message that can be read and written is read as the same again.
template <typename T>
void read_twice(std::string_view body, T (*from)(std::string_view)) {
  const std::string written = to_body(from(body));
  require(to_body(from(written)) == written, ErrorKind::internal,
          "a message changed when it was written and read");
}

void read_frame(const Frame& frame) {
  namespace control = comm::control;
  switch (frame.type) {
    case FrameType::hello:
      return read_twice(frame.body, control::hello_from);
    case FrameType::table:
      return read_twice(frame.body, control::table_from);
    case FrameType::news:
      return read_twice(frame.body, control::news_from);
    case FrameType::failure:
      return read_twice(frame.body, control::failure_from);
    case FrameType::request:
      return read_twice(frame.body, control::door_request_from);
    case FrameType::roster:
      return read_twice(frame.body, control::roster_from);
    case FrameType::doors:
      return read_twice(frame.body, control::doors_from);
    case FrameType::vitals:
      if (const auto vitals = vitals_from(control::vitals_from(frame.body).text))
        to_string(vitals->mesh);
      return;
    case FrameType::place:
      control::parse_endpoint(frame.body);
      return;
    default:
      return;
  }
}

}  // namespace

// Data of a control connection, in two pieces.
void read(const Bytes& bytes) {
  with_name(bytes, [&] {
    comm::control::FrameReader reader;
    const std::string_view text = bytes.text();
    for (const std::string_view piece :
         {text.substr(0, text.size() / 2), text.substr(text.size() / 2)}) {
      reader.feed(piece);
      while (const auto frame = reader.next()) read_frame(*frame);
    }
  });
}

std::vector<std::string> seeds() {
  namespace control = comm::control;
  const control::Participant who = {.number = 3, .host = "n01", .process = 7, .door = "n01:9"};
  const auto frame = [](FrameType type, const std::string& body) {
    return control::encode({type, body});
  };
  return {
      frame(FrameType::hello, to_body(control::Hello{.size = 3, .host = "n01"})),
      frame(FrameType::table, to_body(std::vector<control::Member>{{"n01", 7, "blob"}})) +
          frame(FrameType::news, to_body(std::vector<control::Sign>{{0.5f, "step 7", false}})),
      frame(FrameType::failure, to_body(control::Failure{.cause = "[worker 1] died"})),
      frame(FrameType::request, to_body(control::DoorRequest{.self = who})) +
          frame(FrameType::roster,
                to_body(control::Roster{
                    .address = "n01:8", .members = {who}, .changes = {{2, "ended"}}})),
      frame(FrameType::doors, to_body(std::vector<std::string>{"n01:9", "[::1]:10"})) +
          frame(FrameType::place, "[::1]:80"),
      frame(FrameType::vitals,
            to_body(control::RankVitals{
                1, to_bytes(Vitals{.at = 1, .mesh = {.stage = 1, .stages = 2, .pipeline = 3}})}))};
}

}  // namespace artel::fuzz::control_message
