#include "artel/transfer/small_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"
#include "artel/tensor/npy.h"
#include "artel/transfer/linear_fit.h"

namespace artel::transfer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "model.json";
constexpr int64_t kMostForChoosing = 5000;  // samples for cross-validation

// Some rows of a tensor, in the given order.
Tensor taken(const Tensor& from, const std::vector<int64_t>& rows) {
  std::vector<int64_t> extents = from.shape().extents();
  const size_t bytes = from.bytes() / static_cast<size_t>(std::max<int64_t>(1, extents[0]));
  extents[0] = static_cast<int64_t>(rows.size());
  Tensor result(Shape(extents), from.dtype());
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(from.raw() + static_cast<size_t>(rows[i]) * bytes, bytes, result.raw() + i * bytes);
  return result;
}

void learn_scales(SmallModel& model, const Tensor& rows) {
  const int64_t count = rows.shape()[0], numbers = rows.shape()[1];
  std::vector<double> sums(static_cast<size_t>(numbers)), squares(sums);
  const float* at = rows.values<float>().data();
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < numbers; ++j, ++at) {
      require(std::isfinite(*at), ErrorKind::numeric,
              "features: number {} of sample {} is {}, expected finite numbers", j, i, *at);
      sums[j] += *at;
    }
  for (double& sum : sums) sum /= static_cast<double>(count);
  at = rows.values<float>().data();
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < numbers; ++j, ++at) squares[j] += (*at - sums[j]) * (*at - sums[j]);
  model.means = Tensor({numbers});
  model.scales = Tensor({numbers});
  for (int64_t j = 0; j < numbers; ++j) {
    const double deviation = std::sqrt(squares[j] / static_cast<double>(count));
    model.means.values<float>()[j] = static_cast<float>(sums[j]);
    // A constant feature carries no information.
    model.scales.values<float>()[j] = deviation > 1e-6 ? static_cast<float>(1 / deviation) : 0.0f;
  }
}

Tensor scaled(const SmallModel& model, const Tensor& rows) {
  const int64_t numbers = model.means.shape()[0];
  require(rows.shape().rank() == 2 && rows.shape()[1] == numbers, ErrorKind::shape,
          "features: got rows {}, expected {} numbers in each", to_string(rows.shape()), numbers);
  Tensor result(rows.shape());
  const auto means = model.means.values<float>(), scales = model.scales.values<float>();
  const float* from = rows.values<float>().data();
  float* to = result.values<float>().data();
  for (int64_t i = 0; i < rows.shape()[0]; ++i)
    for (int64_t j = 0; j < numbers; ++j, ++from, ++to) *to = (*from - means[j]) * scales[j];
  return result;
}

std::vector<double> row_lengths(const Tensor& rows) {
  const int64_t numbers = rows.shape()[1];
  std::vector<double> squares;
  for (int64_t i = 0; i < rows.shape()[0]; ++i) {
    const float* row = rows.values<float>().data() + i * numbers;
    squares.push_back(std::inner_product(row, row + numbers, row, 0.0));
  }
  return squares;
}

// Inner products of all rows of `a` with all rows of `b`.
Tensor products(const Tensor& a, const Tensor& b, int threads) {
  return LinearFitter::outputs({.weights = b, .bias = Tensor({b.shape()[0]})}, a, threads);
}

// Distance-weighted votes for classes, as logarithms of shares.
void vote(const Neighbours& near, std::span<const int32_t> labels, int64_t k,
          std::span<float> scores) {
  std::vector<double> votes(scores.size(), 1e-3);
  for (int64_t i = 0; i < std::min<int64_t>(k, std::ssize(near)); ++i)
    votes[labels[near[i].row]] += 1 / (1e-6 + near[i].distance);
  const double all = std::accumulate(votes.begin(), votes.end(), 0.0);
  for (size_t c = 0; c < votes.size(); ++c)
    scores[c] = static_cast<float>(std::log(votes[c] / all));
}

int64_t best_of(std::span<const float> scores) {
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

SmallScore score_of(const Tensor& scores, const Tensor& targets) {
  const int64_t count = scores.shape()[0], outputs = scores.shape()[1];
  SmallScore result = {.samples = count};
  if (count == 0) return result;
  for (int64_t i = 0; i < count; ++i) {
    const auto row = scores.values<float>().subspan(i * outputs, outputs);
    if (targets.dtype() == DType::f32) {
      const double wrong = row[0] - targets.values<float>()[i];
      result.loss += wrong * wrong;
      continue;
    }
    const int32_t label = targets.values<int32_t>()[i];
    const double most = *std::ranges::max_element(row);
    double sum = 0;
    for (const float score : row) sum += std::exp(score - most);
    result.loss -= row[label] - most - std::log(sum);
    result.accuracy += best_of(row) == label;
  }
  result.loss /= static_cast<double>(count);
  result.accuracy /= static_cast<double>(count);
  return result;
}

struct Sample {
  Tensor rows, targets;
};

// The samples for cross-validation: all, or a random subset.
Sample for_choosing(const Tensor& rows, const Tensor& targets, uint64_t seed) {
  const int64_t count = rows.shape()[0];
  if (count <= kMostForChoosing) return {rows, targets};
  const double left_out = 1 - static_cast<double>(kMostForChoosing) / static_cast<double>(count);
  const std::vector<int64_t> some = data::split_samples(count, left_out, seed).train;
  return {taken(rows, some), taken(targets, some)};
}

void fit_linear(SmallModel& model, const Tensor& rows, const Tensor& targets,
                const SmallModelOptions& options) {
  const int64_t outputs = model.made.classes > 0 ? model.made.classes : 1;
  std::vector<double> choices = options.l2;
  if (choices.empty())
    for (int power = 0; power >= -6; --power) choices.push_back(std::pow(10.0, power));
  std::ranges::sort(choices, std::greater());
  model.choice = choices.front();
  const Sample some = for_choosing(rows, targets, options.seed);
  const int64_t count = some.rows.shape()[0];
  const auto folds = std::min<int64_t>(options.folds, count);
  if (choices.size() > 1 && folds > 1) {
    for (const double l2 : choices) model.tried.push_back({.choice = l2});
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    Random random{options.seed, hash_name("folds")};
    for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.below(i + 1)]);
    for (int64_t fold = 0; fold < folds; ++fold) {
      std::vector<int64_t> in, out;
      for (int64_t i = 0; i < count; ++i) (i % folds == fold ? out : in).push_back(order[i]);
      const LinearFitter fitter(taken(some.rows, in), taken(some.targets, in), outputs,
                                options.threads);
      const Tensor held_out = taken(some.rows, out), labels = taken(some.targets, out);
      LinearFit fit;
      for (size_t c = 0; c < choices.size(); ++c) {  // strongest penalty first
        fit = fitter.fit(choices[c], c > 0 ? &fit : nullptr, 200, options.least_gain);
        const SmallScore score =
            score_of(LinearFitter::outputs(fit, held_out, options.threads), labels);
        const double share = static_cast<double>(out.size()) / static_cast<double>(count);
        model.tried[c].accuracy += share * score.accuracy;
        model.tried[c].loss += share * score.loss;
      }
    }
    // Selects the strongest penalty whose loss is close to the minimum.
    model.choice = std::ranges::min_element(model.tried, {}, &Tried::loss)->choice;
  }
  const LinearFit fit = LinearFitter(rows, targets, outputs, options.threads)
                            .fit(model.choice, nullptr, 500, options.least_gain);
  model.weights = fit.weights;
  model.more = fit.bias;
}

void fit_neighbours(SmallModel& model, const Tensor& rows, const Tensor& targets,
                    const SmallModelOptions& options) {
  std::vector<int64_t> choices = options.neighbours;
  if (choices.empty()) choices = {1, 3, 5, 9, 15, 25};
  model.weights = rows;
  model.more = targets;
  model.choice = static_cast<double>(choices.front());
  const Sample some = for_choosing(rows, targets, options.seed);
  const int64_t most = *std::ranges::max_element(choices);
  if (choices.size() == 1 || some.rows.shape()[0] < 3) return;
  // Leave-one-out: each sample is classified by all others.
  ThreadPool pool(options.threads);
  auto near = make_index(some.rows)->nearest(pool, some.rows, most + 1);
  for (size_t i = 0; i < near.size(); ++i)
    std::erase_if(near[i], [&](const auto& each) { return each.row == static_cast<int64_t>(i); });
  for (const int64_t k : choices) {
    Tensor scores({some.rows.shape()[0], model.made.classes});
    for (size_t i = 0; i < near.size(); ++i)
      vote(near[i], some.targets.values<int32_t>(), k,
           scores.values<float>().subspan(i * model.made.classes, model.made.classes));
    const SmallScore score = score_of(scores, some.targets);
    model.tried.push_back(
        {.choice = static_cast<double>(k), .accuracy = score.accuracy, .loss = score.loss});
  }
  model.choice = std::ranges::max_element(model.tried, {}, &Tried::accuracy)->choice;
}

void fit_centroids(SmallModel& model, const Tensor& rows, const Tensor& targets) {
  const int64_t classes = model.made.classes, numbers = rows.shape()[1];
  std::vector<double> sums(static_cast<size_t>(classes * numbers)), counts(classes);
  const auto labels = targets.values<int32_t>();
  const float* at = rows.values<float>().data();
  for (int64_t i = 0; i < rows.shape()[0]; ++i) {
    counts[labels[i]] += 1;
    for (int64_t j = 0; j < numbers; ++j) sums[labels[i] * numbers + j] += *at++;
  }
  model.weights = Tensor({classes, numbers});
  for (int64_t c = 0; c < classes; ++c)
    for (int64_t j = 0; j < numbers; ++j)
      model.weights.values<float>()[c * numbers + j] =
          static_cast<float>(sums[c * numbers + j] / std::max(1.0, counts[c]));
  double spread = 0;
  at = rows.values<float>().data();
  for (int64_t i = 0; i < rows.shape()[0]; ++i)
    for (int64_t j = 0; j < numbers; ++j) {
      const double wrong = *at++ - model.weights.values<float>()[labels[i] * numbers + j];
      spread += wrong * wrong;
    }
  spread /= static_cast<double>(rows.shape()[0]);
  model.more = Tensor::from<float>({1}, {static_cast<float>(-0.5 / std::max(1e-12, spread))});
}

Tensor centroid_scores(const SmallModel& model, const Tensor& rows, int threads) {
  Tensor scores = products(rows, model.weights, threads);
  const std::vector<double> lengths = row_lengths(rows), known = row_lengths(model.weights);
  const double factor = model.more.values<float>()[0];
  const int64_t classes = model.weights.shape()[0];
  auto values = scores.values<float>();
  for (int64_t i = 0; i < rows.shape()[0]; ++i)
    for (int64_t c = 0; c < classes; ++c) {
      float& value = values[i * classes + c];
      value = static_cast<float>(factor * (lengths[i] + known[c] - 2.0 * value));
    }
  return scores;
}

}  // namespace

Tensor SmallModel::scores(const Tensor& rows, int threads) const {
  const Tensor x = scaled(*this, rows);
  if (kind == "centroid") return centroid_scores(*this, x, threads);
  if (kind == "linear") {
    Tensor scores = LinearFitter::outputs({.weights = weights, .bias = more}, x, threads);
    if (made.classes == 0)
      for (float& value : scores.values<float>())
        value = static_cast<float>(target_mean + target_scale * value);
    return scores;
  }
  ThreadPool pool(threads);
  const auto near = index->nearest(pool, x, static_cast<int64_t>(choice));
  Tensor scores({rows.shape()[0], made.classes});
  for (size_t i = 0; i < near.size(); ++i)
    vote(near[i], more.values<int32_t>(), static_cast<int64_t>(choice),
         scores.values<float>().subspan(i * made.classes, made.classes));
  return scores;
}

SmallModel fit_small(const std::string& kind, const Features& features,
                     const SmallModelOptions& options) {
  require(kind == "linear" || kind == "knn" || kind == "centroid", ErrorKind::invalid_argument,
          "model: got '{}', expected linear, knn or centroid", kind);
  Tensor targets = features.train.targets;
  require(targets.elements() > 0, ErrorKind::invalid_argument,
          "features: the samples have no targets, expected classes or values");
  const bool classes = features.classes > 0;
  require(classes || kind == "linear", ErrorKind::unsupported,
          "{}: the targets are values, expected classes; try linear", kind);
  require(!classes || features.classes > 1, ErrorKind::invalid_argument,
          "features: got one class, expected two or more to tell apart");
  require(targets.shape().rank() == 1, ErrorKind::unsupported,
          "features: got targets {}, expected one for each sample", to_string(targets.shape()));
  SmallModel model = {.kind = kind};
  model.made = features;
  model.made.train = {};
  model.made.test = {};
  const Tensor all = Features::rows(features.train);
  learn_scales(model, all);
  const Tensor rows = scaled(model, all);
  if (!classes) {
    targets = targets.clone();
    double mean = 0, square = 0;
    for (const float value : targets.values<float>()) mean += value;
    mean /= static_cast<double>(targets.elements());
    for (const float value : targets.values<float>()) square += (value - mean) * (value - mean);
    model.target_mean = mean;
    model.target_scale = std::sqrt(square / static_cast<double>(targets.elements()));
    if (model.target_scale < 1e-12) model.target_scale = 1;
    for (float& value : targets.values<float>())
      value = static_cast<float>((value - mean) / model.target_scale);
  }
  if (kind == "linear") fit_linear(model, rows, targets, options);
  if (kind == "knn") {
    fit_neighbours(model, rows, targets, options);
    model.index = make_index(model.weights);
  }
  if (kind == "centroid") fit_centroids(model, rows, targets);
  return model;
}

SmallScore judge(const SmallModel& model, const FeaturePart& part, int threads) {
  if (part.size() == 0) return {};
  return score_of(model.scores(Features::rows(part), threads), part.targets);
}

bool is_small_model(const fs::path& folder) { return fs::exists(folder / kFile); }

void SmallModel::save(const fs::path& folder) const {
  fs::create_directories(folder);
  nlohmann::ordered_json json = {{"model", kind},
                                 {"choice", choice},
                                 {"base", made.base},
                                 {"weights", made.weights},
                                 {"overrides", made.overrides},
                                 {"side", made.side},
                                 {"layers", made.request.layers},
                                 {"pooling", std::string(to_string(made.request.pooling))},
                                 {"columns", made.columns},
                                 {"classes", made.classes},
                                 {"class_names", made.class_names},
                                 {"target_mean", target_mean},
                                 {"target_scale", target_scale}};
  write_npz(folder / "model.npz",
            {{"means", means}, {"scales", scales}, {"weights", weights}, {"more", more}});
  write_file_atomically(folder / kFile, json.dump(2) + "\n");
}

SmallModel SmallModel::load(const fs::path& folder) {
  const std::string where = (folder / kFile).string();
  const nlohmann::json json = parse_json(read_file(folder / kFile), where);
  SmallModel model;
  try {
    model.kind = json.at("model");
    model.choice = json.at("choice");
    model.made.base = json.at("base");
    model.made.weights = json.at("weights");
    model.made.overrides = json.at("overrides");
    model.made.side = json.at("side");
    model.made.request.layers = json.at("layers");
    model.made.request.pooling = pooling_by_name(json.at("pooling"));
    model.made.columns = json.at("columns");
    model.made.classes = json.at("classes");
    model.made.class_names = json.at("class_names");
    model.target_mean = json.at("target_mean");
    model.target_scale = json.at("target_scale");
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", where, error.what());
  }
  const NamedTensors arrays = read_npz(folder / "model.npz");
  for (const auto& [name, to] :
       {std::pair("means", &model.means), std::pair("scales", &model.scales),
        std::pair("weights", &model.weights), std::pair("more", &model.more)}) {
    const Tensor* const found = find_tensor(arrays, name);
    require(found != nullptr, ErrorKind::corrupt, "[{}] has no array '{}'",
            (folder / "model.npz").string(), name);
    *to = *found;
  }
  if (model.kind == "knn") model.index = make_index(model.weights);
  return model;
}

}  // namespace artel::transfer
