#include "artel/dashboard/guarded_server.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "artel/dashboard/connection.h"

namespace artel::dashboard {
namespace {

constexpr int kMostRequests = 1000;  // of a connection

// What the thread that serves a connection knows about it.
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
      const std::lock_guard lock(mutex_);
      too_many = jobs_.size() >= kMostWaiting;
      if (!too_many) jobs_.push_back(std::move(job));
      busy = jobs_.size() > idle_;
    }
    if (busy) make_room_();
    if (too_many) return job();  // which closes the connection
    changed_.notify_one();
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
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
  std::mutex mutex_;  // protects what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

GuardedServer::GuardedServer(SSL_CTX* encryption) : encryption_(encryption) {
  new_task_queue = [this] { return new Queue([this] { make_room(); }); };
}

void GuardedServer::make_room() {
  const std::lock_guard lock(mutex_);
  auto found = std::ranges::find_if(clients_, [](const Client& each) { return !each.trusted; });
  if (found == clients_.end())
    found = std::ranges::find_if(clients_, [](const Client& each) { return each.idle; });
  if (found != clients_.end()) found->connection->hang_up();
}

void GuardedServer::trust_client() {
  const std::lock_guard lock(mutex_);
  if (trusted_here != nullptr) *trusted_here = true;
}

bool GuardedServer::process_and_close_socket(socket_t socket) {
  if (std::exchange(too_many, false)) return ::close(socket) == 0;
  Connection connection(socket, encryption_);
  std::list<Client>::iterator client;
  const auto change = [&](const auto& body) {
    const std::lock_guard lock(mutex_);
    body();
  };
  change([&] { client = clients_.insert(clients_.end(), Client{.connection = &connection}); });
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
  change([&] { clients_.erase(client); });
  return true;
}

}  // namespace artel::dashboard
