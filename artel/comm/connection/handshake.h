// Mutual authentication: both ends of a connection prove that they know the run's secret, without
// sending it. Independent of sockets: messages are byte strings.
//
//   listener                                caller
//   challenge: version, a random number,
//   whether the rest is encrypted       ->
//                                       <-  answer: version, another random number, its claims
//                                           (who it is, what it wants), a proof of all of that
//   proof                               ->
//
// A proof is a keyed digest (HMAC-SHA-256) of both random numbers, the topic, and the claims. An
// eavesdropper can neither replay a handshake, because the next challenge differs, nor change its
// claims. The caller proves itself first, so a process that merely connects gets no material for
// guessing a weak secret.
//
// Later messages are protected only if the connection is encrypted.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "artel/base/error.h"

namespace artel::comm {

// The common parameters of both ends, other than the secret.
struct Protocol {
  uint32_t magic = 0;
  uint32_t version = 0;
  std::string_view name;  // for people: "protocol"
};

// The caller's token is not that of the listener's run.
class WrongToken : public Error {
 public:
  explicit WrongToken(const std::string& message) : Error(ErrorKind::communication, message) {}
};

// For a caller that was refused: throws "`what`: `objection`", with the listener's objection
// (Verdict). The type is WrongToken if the listener objects to the token.
[[noreturn]] void fail_refused(const std::string& what, std::string_view objection);

// The secret of a run, in the form that proofs are made with.
class RunKey {
 public:
  explicit RunKey(std::string_view token);
  // The keyed digest of these parts. Different parts never share one, wherever they are cut.
  std::string digest(std::initializer_list<std::string_view> parts) const;

 private:
  std::string key_;
};

// The end that listens; one for each connection.
class Challenger {
 public:
  explicit Challenger(const Protocol& protocol, bool encrypts = false);

  // The first message.
  std::string challenge() const;

  struct Verdict {
    std::string objection;  // reason for rejecting the caller; empty if accepted
    std::string claims;     // the caller's claims, if accepted
  };
  // Accepts arbitrary bytes. Only the first answer to a challenge counts.
  Verdict judge(const RunKey& key, std::string_view topic, std::string_view answer);

  // The last message, for an accepted caller.
  std::string proof(const RunKey& key) const;

 private:
  Protocol protocol_;
  bool encrypts_;
  std::string number_;  // random
  std::string theirs_;  // of the counted answer
  bool answered_ = false;
};

// The end that calls.
class Answerer {
 public:
  Answerer(const Protocol& protocol, const RunKey& key, std::string topic, std::string claims,
           bool encrypts = false);

  // Answers a listener of another version as well, so that it can report the difference. Throws
  // Error(communication) if the challenge is not of this protocol, or if only one side encrypts.
  std::string answer(std::string_view challenge);
  // True if the listener's proof is valid.
  bool believes(std::string_view proof) const;

 private:
  Protocol protocol_;
  RunKey key_;
  std::string topic_, claims_;
  bool encrypts_;
  std::string number_;  // random
  std::string theirs_;  // of the challenge
};

}  // namespace artel::comm
