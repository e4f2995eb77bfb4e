// A handle of an asynchronous operation: a message, or a collective on the group's own thread.
//
//   float number = 1;
//   if (artel::comm::Group* group = cluster.group(); group && group->rank() == 0) {
//     artel::comm::Handle sent = group->send(1, 7, std::as_bytes(std::span(&number, 1)));
//     sent.wait(artel::Deadline::after(10));
//   }
#pragma once

#include <memory>

#include "artel/base/time.h"

namespace artel::comm {

class Handle {
 public:
  class State {
   public:
    virtual ~State() = default;
    // Rethrows the error of the operation, or throws a timeout.
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
