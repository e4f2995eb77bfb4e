#include "artel/comm/control/link.h"

#include "artel/base/log.h"

namespace artel::comm::control {

void Link::flush() {
  try {
    while (!unsent.empty()) {
      const size_t sent = stream.send(std::as_bytes(std::span(unsent)));
      if (sent == 0) return;
      unsent.erase(0, sent);
    }
  } catch (const Error& error) {
    // The other side is gone, or does not know the key of an encrypted connection.
    if (encryption_ && !known)
      close(error);
    else
      closed = true;
  }
}

void Link::close(const Error& error) {
  log(LogLevel::debug, "control connection closed: {}", error.what());
  failure = error.what();
  closed = true;
}

namespace {

// Separate topics, so that a hello is never accepted as a request.
std::string topic_of(FrameType type) { return type == FrameType::request ? "request" : "hello"; }

}  // namespace

void Link::challenge(const RunSecret& secret) {
  challenger_.emplace(kProtocol, secret.encryption.has_value());
  queue(FrameType::challenge, challenger_->challenge());
  flush();  // a new connection takes it at once
  if (!unsent.empty()) closed = true;
  if (secret.encryption && !closed) stream.encrypt(*secret.encryption, true);
}

Challenger::Verdict Link::judge(const RunKey& key, const Frame& answer) {
  Challenger::Verdict verdict = challenger_->judge(key, topic_of(answer.type), answer.body);
  if (verdict.objection.empty()) queue(FrameType::proof, challenger_->proof(key));
  return verdict;
}

void Link::refuse(const std::string& reason) {
  queue(FrameType::refusal, reason);
  flush();
  closed = true;
}

void Link::introduce(const RunSecret& secret, FrameType type, std::string claims) {
  answerer_.emplace(kProtocol, secret.key, topic_of(type), std::move(claims),
                    secret.encryption.has_value());
  encryption_ = secret.encryption;
  answer_type_ = type;
}

bool Link::is_part_of_the_introduction(const Frame& frame) {
  if (!answerer_ || known || frame.type == FrameType::refusal) return false;
  if (frame.type == FrameType::challenge) {
    queue(answer_type_, answerer_->answer(frame.body));
    if (encryption_) stream.encrypt(*encryption_, false);
    flush();
  } else if (frame.type == FrameType::proof) {
    require(answerer_->believes(frame.body), ErrorKind::communication,
            "[comm control] the process that listens there does not know the token");
    known = true;
  } else {
    require(frame.type == FrameType::beat, ErrorKind::corrupt,
            "[comm control] got a message of type {} before a proof", static_cast<int>(frame.type));
  }
  return true;
}

void Link::read(const std::function<void(const Frame&)>& handle) {
  try {
    std::string bytes;
    const bool stranger = challenger_ && !known;
    spoke = spoke || (stranger && stream.has_bytes());
    const bool open = stranger ? stream.receive(bytes, kMostOfStrangers) : stream.receive(bytes);
    reader.feed(bytes);
    require(!stranger || reader.pending() <= kMostOfStrangers, ErrorKind::corrupt,
            "[comm control] got more than {} bytes from an unknown process, expected a greeting",
            kMostOfStrangers);
    while (!closed && !(only_introduces && known)) {
      const auto frame = reader.next();
      if (!frame) break;
      if (!is_part_of_the_introduction(*frame)) handle(*frame);
    }
    if (!open) closed = true;
  } catch (const Error& error) {
    close(error);
  }
}

}  // namespace artel::comm::control
