// Waits for something that was started: a message, or a collective on the group's own thread.
#pragma once

#include <memory>

#include "artel/base/time.h"

namespace artel::comm {

class Handle {
 public:
  class State {
   public:
    virtual ~State() = default;
    // Throws what the operation threw, or a timeout.
    virtual void wait(Deadline deadline) = 0;
  };

  Handle() = default;
  explicit Handle(std::unique_ptr<State> state) : state_(std::move(state)) {}

  // Returns when the operation is complete; rethrows its error. Further calls return at once.
  void wait(Deadline deadline);
  bool valid() const { return state_ != nullptr; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace artel::comm
