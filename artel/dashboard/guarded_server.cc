#include "artel/dashboard/guarded_server.h"

#include <unistd.h>
#include <utility>

#include <algorithm>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/dashboard/connection.h"

namespace artel::dashboard {
namespace {

constexpr int kMostRequests = 1000;  // per connection

// The connection that the current thread serves.
thread_local bool too_many = false;
thread_local bool* trusted_here = nullptr;

}  // namespace

class GuardedServer::Queue final : public httplib::TaskQueue {
 public:
  explicit Queue(std::function<void()> make_room) : make_room_(std::move(make_room)) {
    for (size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
  }

  void enqueue(std::function<void()> job) override {
    bool busy = false;
    {
      const MutexLock lock(mutex_);
      too_many = jobs_.size() >= kMostWaiting;
      if (!too_many) jobs_.push_back(std::move(job));
      busy = jobs_.size() > idle_;
    }
    if (busy) make_room_();
    if (too_many) return job();  // closes the connection
    changed_.notify_one();
  }

  void shutdown() override {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    MutexLock lock(mutex_);
    while (true) {
      ++idle_;
      changed_.wait(lock, [this]() ARTEL_REQUIRES(mutex_) { return stopping_ || !jobs_.empty(); });
      --idle_;
      if (jobs_.empty()) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
      if (!jobs_.empty()) {
        lock.unlock();
        make_room_();
        lock.lock();
      }
    }
  }

  const std::function<void()> make_room_;
  Mutex mutex_;  // guards the members below
  Condition changed_;
  std::deque<std::function<void()>> jobs_ ARTEL_GUARDED_BY(mutex_);
  size_t idle_ ARTEL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ARTEL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

GuardedServer::GuardedServer(SSL_CTX* encryption) : encryption_(encryption) {
  new_task_queue = [this] { return new Queue([this] { make_room(); }); };
}

void GuardedServer::make_room() {
  const MutexLock lock(mutex_);
  auto found = std::ranges::find_if(clients_, [](const Client& each) { return !each.trusted; });
  if (found == clients_.end())
    found = std::ranges::find_if(clients_, [](const Client& each) { return each.idle; });
  if (found != clients_.end()) found->connection->hang_up();
}

void GuardedServer::trust_client() {
  const MutexLock lock(mutex_);
  if (trusted_here != nullptr) *trusted_here = true;
}

bool GuardedServer::process_and_close_socket(socket_t socket) {
  if (std::exchange(too_many, false)) return ::close(socket) == 0;
  Connection connection(socket, encryption_);
  std::list<Client>::iterator client;
  const auto change = [&](const auto& body) {
    const MutexLock lock(mutex_);
    body();
  };
  change([&]() ARTEL_REQUIRES(mutex_) {
    client = clients_.insert(clients_.end(), Client{.connection = &connection});
  });
  trusted_here = &client->trusted;
  bool open = connection.greet();
  for (int request = 1; open && request <= kMostRequests; ++request) {
    change([&] { client->idle = true; });
    const Deadline deadline = Deadline::after(Connection::kIdleSeconds);
    bool comes = false;
    while (!comes && svr_sock_ != INVALID_SOCKET && !deadline.passed() && connection.is_open())
      comes = connection.await_request(0.1);
    change([&] { client->idle = false; });
    bool closed = false;
    open =
        comes && process_request(connection, request == kMostRequests, closed, nullptr) && !closed;
  }
  trusted_here = nullptr;
  change([&]() ARTEL_REQUIRES(mutex_) { clients_.erase(client); });
  return true;
}

}  // namespace artel::dashboard
