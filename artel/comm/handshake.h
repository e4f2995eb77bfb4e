// How the two ends of a connection show each other that they know the secret of the run, without
// sending it. No sockets here: the messages go in and out as bytes.
//
//   listener                                caller
//   challenge: version, a random number,
//   whether the rest is encrypted       ->
//                                       <-  answer: version, another random number, its claims
//                                           (who it is, what it wants), a proof of all of that
//   proof                               ->
//
// A proof is a keyed digest (HMAC-SHA-256) of both random numbers, the topic and the claims. So
// whoever has listened to a handshake can neither repeat it, because the next challenge is another
// one, nor change the claims in it. The caller proves itself first: somebody who just connects gets
// nothing from which a weak secret could be guessed.
//
// What is sent afterwards is only protected where the connection is encrypted.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace artel::comm {

// What the ends of a connection have in common beside the secret.
struct Protocol {
  uint32_t magic = 0;
  uint32_t version = 0;
  std::string_view name;  // for people: "protocol"
};

// The secret of a run, in the form that proofs are made with.
class RunKey {
 public:
  explicit RunKey(std::string_view token);
  // The keyed digest of these parts; other parts never have the same, wherever they are cut.
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
    std::string objection;  // why the caller is not believed; empty: it is
    std::string claims;     // of a caller that is believed
  };
  // Any bytes may come. Only the first answer to a challenge is heard.
  Verdict judge(const RunKey& key, std::string_view topic, std::string_view answer);

  // The last message, for a caller that was believed.
  std::string proof(const RunKey& key) const;

 private:
  Protocol protocol_;
  bool encrypts_;
  std::string number_;  // random
  std::string theirs_;  // of the answer that was heard
  bool answered_ = false;
};

// The end that calls.
class Answerer {
 public:
  Answerer(const Protocol& protocol, const RunKey& key, std::string topic, std::string claims,
           bool encrypts = false);

  // A listener of another version gets an answer from which it can tell. Throws
  // Error(communication) if the challenge is not one of this protocol, or if only one side
  // encrypts.
  std::string answer(std::string_view challenge);
  // Whether the listener knows the secret, too.
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
