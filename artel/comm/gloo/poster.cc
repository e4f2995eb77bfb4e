#include "artel/comm/gloo/poster.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "artel/base/error.h"

namespace artel::comm::gloo {

Poster::Poster(::gloo::transport::tcp::Device& device)
    : device_(device), bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  require(bell_.get() >= 0, ErrorKind::io, "[comm gloo] eventfd: {}", std::strerror(errno));
  device_.registerDescriptor(bell_.get(), EPOLLIN, this);
}

Poster::~Poster() { device_.unregisterDescriptor(bell_.get(), this); }

void Poster::post(Posting& posting) {
  const MutexLock lock(mutex_);
  waiting_.push_back(&posting);
  // The thread that runs the first also finds the others.
  if (waiting_.size() == 1) eventfd_write(bell_.get(), 1);
}

void Poster::withdraw(Posting& posting) {
  MutexLock lock(mutex_);
  std::erase(waiting_, &posting);
  ran_.wait(lock, [&]() ARTEL_REQUIRES(mutex_) { return running_ != &posting; });
}

void Poster::throw_if_failed(const Posting& posting) {
  const MutexLock lock(mutex_);
  if (posting.error_) std::rethrow_exception(posting.error_);
}

void Poster::handleEvents(int) {
  eventfd_t rings;
  eventfd_read(bell_.get(), &rings);
  MutexLock lock(mutex_);
  while (!waiting_.empty()) {
    Posting* const posting = running_ = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      posting->run();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    posting->error_ = error;
    running_ = nullptr;
    ran_.notify_all();
  }
}

}  // namespace artel::comm::gloo
