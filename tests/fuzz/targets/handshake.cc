#include "artel/comm/connection/handshake.h"

#include "artel/base/error.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::handshake {
namespace {

constexpr comm::Protocol kProtocol = {0x4c545241, 7, "protocol"};

}  // namespace

// Arbitrary data in place of an answer, a challenge, or a proof is never accepted.
void read(const Bytes& bytes) {
  static const comm::RunKey key("secret");
  comm::Challenger listener(kProtocol);
  require(!listener.judge(key, "hello", bytes.text()).objection.empty(), ErrorKind::internal,
          "an answer without the token was believed");
  comm::Answerer caller(kProtocol, key, "hello", "claims");
  try {
    caller.answer(bytes.text());
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::communication, ErrorKind::internal, "{}", error.what());
  }
  require(!caller.believes(bytes.text()), ErrorKind::internal,
          "a proof without the token was believed");
}

std::vector<std::string> seeds() {
  comm::Challenger listener(kProtocol);
  comm::Answerer caller(kProtocol, comm::RunKey("other"), "hello", "claims");
  const std::string challenge = listener.challenge();
  return {challenge, caller.answer(challenge), std::string(32, 'x')};
}

}  // namespace artel::fuzz::handshake
