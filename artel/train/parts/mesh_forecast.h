// Forecasts time and memory of a step in each mesh that some workers can form, before starting
// anything. Uses the costs of the ops, a simulation of pipelines, and a model of the links.
//
// Forecasts determine which worker computes which part. They never change results.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "artel/comm/collectives/calibration.h"
#include "artel/graph/ops/shards.h"
#include "artel/train/parts/mesh_axes.h"

namespace artel {

// The memory of a process without a network.
inline constexpr double kProgramBytes = 48 << 20;

struct MeshQuestion {
  int workers = 1;
  int lanes = 1;
  int threads = 1;  // of each worker
  int shards = 1;   // divided by the number of workers of a tensor group
  int slots = 0;    // optimizer values per parameter
  std::string schedule = "auto";
  std::string sharding = {};    // empty for any
  double memory = 0;            // bytes available to each worker; 0 means unlimited
  bool mirrors = false;         // parts have copies (cluster.mirror_every)
  std::vector<int> hosts = {};  // machine of each worker; empty if all share one
  // Speeds relative to the fastest worker; empty if all are equal.
  std::vector<double> speeds = {};
  comm::Calibration links = {};
  // The graph of a lane with these shards, and the seconds of its nodes on one thread.
  std::function<Graph(const ShardPart&)> graph;
  std::function<std::vector<double>(const Graph&)> seconds;
};

struct MeshForecast {
  int data = 1;  // copies of the network
  MeshSize size;
  std::string sharding = "none", schedule = {};
  double seconds = 0;  // per step
  double memory = 0;   // bytes of the worker that needs the most
  double mirrors = 0;  // additional bytes for copies of parts, made if there is room

  int workers() const { return data * size.workers(); }
  bool fits(double limit) const { return limit <= 0 || memory <= limit; }
  bool fits_with_mirrors(double limit) const;
};

// "data 2 x pipeline 2 x tensor 1, sharding "gradients"".
std::string to_string(const MeshForecast& mesh);

// All possible meshes, simple ones first.
std::vector<MeshForecast> forecast_meshes(const MeshQuestion& question);
// The forecast of one possible mesh.
MeshForecast forecast_mesh(const MeshQuestion& question, const MeshSize& size,
                           const std::string& sharding);

// The fastest mesh that fits with copies of its parts, or without copies if none does. Of about
// equally fast meshes, the simplest. Empty if none fits.
std::optional<MeshForecast> best_mesh(const std::vector<MeshForecast>& meshes, double memory);

// Explains the choice: the best mesh compared with the others, in a sentence.
std::string reasons_for(const MeshForecast& best, const std::vector<MeshForecast>& meshes,
                        double memory);
// Suggests changes that make the network fit: another mesh with the same number of workers, or
// more.
std::string suggest_fit(MeshQuestion question);

}  // namespace artel
