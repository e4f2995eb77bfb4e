// The workers of a run: one, or all that the launcher started.
//
// A launcher tells each worker its place in the environment: `artel train -n 4` and `artel launch`
// through ARTEL_* variables, mpirun and srun through their own. User code does not see the
// difference. With parameter servers the last processes of the launcher are servers: they call
// `serve`, and the others are the workers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "artel/comm/group.h"

namespace artel {

class Cluster {
 public:
  // One worker: this process.
  Cluster();
  // What the launcher said in the environment; one worker without a launcher.
  Cluster(int argc, char** argv);
  // Returns when all workers and servers are there.
  explicit Cluster(const comm::GroupOptions& options);
  ~Cluster();
  Cluster(Cluster&&) noexcept;

  int rank() const { return group_ ? group_->rank() : 0; }
  int size() const { return group_ ? group_->size() : 1; }
  // The cores that this worker may use: those given to all workers of its machine, shared evenly.
  int cores() const { return cores_[static_cast<size_t>(rank())]; }
  // The workers; nothing for one worker.
  comm::Group* group() { return group_.get(); }

  // Runs the body. If it throws, the other workers learn what happened here and stop, too.
  void attempt(const std::function<void()>& body);

  // Parameter servers, whose number is 0 without them.
  int servers() const { return servers_; }
  bool is_server() const { return is_server_; }
  // Workers and servers; nothing without servers.
  comm::Group* world() { return servers_ > 0 ? world_.get() : nullptr; }
  // What a server does until all workers have left.
  void serve();

  // "worker 2 on host n07, 4 cores" for each worker.
  std::vector<std::string> members() const;

 private:
  void connect(const comm::GroupOptions& options);
  void share_cores();

  std::vector<int> cores_;  // of each worker
  int servers_ = 0;
  bool is_server_ = false;
  std::unique_ptr<comm::Group> world_;  // with servers
  std::unique_ptr<comm::Group> group_;
};

}  // namespace artel
