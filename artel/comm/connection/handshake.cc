#include "artel/comm/connection/handshake.h"

#include <fmt/format.h>

#include <cstring>

#include "artel/base/secret.h"

namespace artel::comm {
namespace {

constexpr size_t kNumberBytes = 32;
constexpr size_t kHeadBytes = 2 * sizeof(uint32_t);
constexpr std::string_view kWrongToken = "wrong token; it belongs to another run";

std::string head_of(const Protocol& protocol) {
  std::string head(kHeadBytes, '\0');
  std::memcpy(head.data(), &protocol.magic, sizeof(uint32_t));
  std::memcpy(head.data() + sizeof(uint32_t), &protocol.version, sizeof(uint32_t));
  return head;
}

Protocol protocol_of(std::string_view message) {
  Protocol protocol;
  if (message.size() < kHeadBytes) return protocol;
  std::memcpy(&protocol.magic, message.data(), sizeof(uint32_t));
  std::memcpy(&protocol.version, message.data() + sizeof(uint32_t), sizeof(uint32_t));
  return protocol;
}

std::string proof_of_caller(const RunKey& key, std::string_view listener, std::string_view caller,
                            std::string_view topic, std::string_view claims) {
  return key.digest({"caller", listener, caller, topic, claims});
}

std::string proof_of_listener(const RunKey& key, std::string_view listener,
                              std::string_view caller) {
  return key.digest({"listener", listener, caller});
}

}  // namespace

void fail_refused(const std::string& what, std::string_view objection) {
  const std::string message = fmt::format("{}: {}", what, objection);
  if (objection == kWrongToken) throw WrongToken(message);
  throw Error(ErrorKind::communication, message);
}

RunKey::RunKey(std::string_view token) : key_(keyed_digest(token, "artel run")) {}

std::string RunKey::digest(std::initializer_list<std::string_view> parts) const {
  std::string message;
  for (const std::string_view part : parts) {
    const uint64_t length = part.size();
    message.append(reinterpret_cast<const char*>(&length), sizeof(length));
    message += part;
  }
  return keyed_digest(key_, message);
}

Challenger::Challenger(const Protocol& protocol, bool encrypts)
    : protocol_(protocol), encrypts_(encrypts), number_(random_bytes(kNumberBytes)) {}

std::string Challenger::challenge() const {
  return head_of(protocol_) + number_ + static_cast<char>(encrypts_);
}

Challenger::Verdict Challenger::judge(const RunKey& key, std::string_view topic,
                                      std::string_view answer) {
  if (answered_) return {.objection = "it has answered before", .claims = {}};
  answered_ = true;
  const Protocol protocol = protocol_of(answer);
  if (protocol.magic != protocol_.magic)
    return {.objection = "it is not an artel worker", .claims = {}};
  if (protocol.version != protocol_.version)
    return {.objection = fmt::format("different versions: got {} {}, expected {}; try the same "
                                     "artel on all machines",
                                     protocol_.name, protocol.version, protocol_.version),
            .claims = {}};
  constexpr size_t kClaims = kHeadBytes + kNumberBytes + kDigestBytes;
  if (answer.size() < kClaims) return {.objection = "its answer is too short", .claims = {}};
  theirs_ = answer.substr(kHeadBytes, kNumberBytes);
  const std::string_view proof = answer.substr(kHeadBytes + kNumberBytes, kDigestBytes);
  const std::string_view claims = answer.substr(kClaims);
  if (!same_secret(proof, proof_of_caller(key, number_, theirs_, topic, claims)))
    return {.objection = std::string(kWrongToken), .claims = {}};
  return {.objection = {}, .claims = std::string(claims)};
}

std::string Challenger::proof(const RunKey& key) const {
  return proof_of_listener(key, number_, theirs_);
}

Answerer::Answerer(const Protocol& protocol, const RunKey& key, std::string topic,
                   std::string claims, bool encrypts)
    : protocol_(protocol),
      key_(key),
      topic_(std::move(topic)),
      claims_(std::move(claims)),
      encrypts_(encrypts),
      number_(random_bytes(kNumberBytes)) {}

std::string Answerer::answer(std::string_view challenge) {
  const Protocol protocol = protocol_of(challenge);
  require(protocol.magic == protocol_.magic, ErrorKind::communication,
          "[comm] the process that listens there is not an artel worker");
  if (protocol.version != protocol_.version) return head_of(protocol_);
  constexpr size_t kBytes = kHeadBytes + kNumberBytes + 1;
  require(challenge.size() == kBytes, ErrorKind::communication,
          "[comm] challenge: got {} bytes, expected {}", challenge.size(), kBytes);
  const bool encrypts = challenge.back() != 0;
  require(encrypts == encrypts_, ErrorKind::communication,
          "[comm] {}; try the same cluster.encrypt for all workers",
          encrypts ? "the run encrypts its connections, but this worker does not"
                   : "this worker encrypts its connections, but the run does not");
  theirs_ = challenge.substr(kHeadBytes, kNumberBytes);
  return head_of(protocol_) + number_ + proof_of_caller(key_, theirs_, number_, topic_, claims_) +
         claims_;
}

bool Answerer::believes(std::string_view proof) const {
  return !theirs_.empty() && same_secret(proof, proof_of_listener(key_, theirs_, number_));
}

}  // namespace artel::comm
