// Scaled dot-product attention: for each sample, head and query, y = sum_k p_k v_k with p the
// softmax of q . k / sqrt(width of a head) over the keys that the query may see.
#include <algorithm>
#include <cmath>
#include <limits>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

// The operands of a node, unpacked to three matrices [batch, positions, heads * width].
struct Operands {
  Array q, k, v;
  const Array* mask = nullptr;  // [batch, keys], 0 where no query may look
  int64_t heads;
  bool causal;
  double dropout;
  uint64_t key;
  int64_t first_head = 0, all_heads = heads;  // where these are some of the heads

  int64_t batch() const { return q.shape[0]; }
  int64_t queries() const { return q.shape[1]; }
  int64_t keys() const { return k.shape[1]; }
  int64_t width() const { return q.shape[2] / heads; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(width())); }

  // Element c of a head at a position.
  static size_t at(const Array& x, int64_t heads, int64_t sample, int64_t position, int64_t head,
                   int64_t c) {
    const int64_t width = x.shape[2] / heads;
    return static_cast<size_t>((sample * x.shape[1] + position) * x.shape[2] + head * width + c);
  }
};

// Columns [begin, begin + count) of the last axis.
Array columns(const Array& x, int64_t begin, int64_t count) {
  Array part = {x.shape, {}};
  const Rows all = rows_of(x.shape);
  part.shape[x.shape.rank() - 1] = count;
  for (int64_t row = 0; row < all.rows; ++row)
    for (int64_t c = begin; c < begin + count; ++c)
      part.data.push_back(x.data[static_cast<size_t>(row * all.columns + c)]);
  return part;
}

// Arrays side by side along the last axis.
Array side_by_side(const Arrays& parts) {
  Array whole = {parts[0].shape, {}};
  whole.shape[whole.shape.rank() - 1] = 0;
  for (const Array& part : parts) whole.shape[whole.shape.rank() - 1] += part.shape.back();
  for (int64_t row = 0; row < rows_of(parts[0].shape).rows; ++row)
    for (const Array& part : parts)
      for (int64_t c = 0; c < part.shape.back(); ++c)
        whole.data.push_back(part.data[static_cast<size_t>(row * part.shape.back() + c)]);
  return whole;
}

// `first`: the input that q, or q, k and v together, are.
Operands operands_of(const Call& call, int first) {
  const bool packed = call.flag("packed");
  const int after = first + (packed ? 1 : 3);
  const int64_t heads = call.attributes().integer("heads");
  Operands o = {.q = call.in(first),
                .k = {},
                .v = {},
                .mask = call.count() > after ? &call.in(after) : nullptr,
                .heads = heads,
                .causal = call.flag("causal"),
                .dropout = call.attributes().number("dropout"),
                .key = random_key(call),
                .first_head = call.attributes().integer("first_head", 0),
                .all_heads = call.attributes().integer("all_heads", heads)};
  if (packed) {
    const int64_t width = o.q.shape.back() / 3;
    o.v = columns(o.q, 2 * width, width);
    o.k = columns(o.q, width, width);
    o.q = columns(o.q, 0, width);
  } else {
    o.k = call.in(first + 1);
    o.v = call.in(first + 2);
  }
  return o;
}

// One query: the probability of each key, what dropout multiplies it by, and the logarithm of the
// sum of the exponentials, largest + rest. A query that sees no key has probabilities 0 and an
// infinite logarithm.
struct Seen {
  std::vector<double> probabilities, factors;
  double largest, rest;
};

Seen look(const Operands& o, int64_t sample, int64_t head, int64_t query,
          Disturbance& disturbance) {
  const int64_t last = o.causal ? query + o.keys() - o.queries() : o.keys() - 1;
  std::vector<double> scores(static_cast<size_t>(o.keys()),
                             -std::numeric_limits<double>::infinity());
  for (int64_t key = 0; key <= last; ++key) {
    if (o.mask && o.mask->data[static_cast<size_t>(sample * o.keys() + key)] == 0) continue;
    double dot = 0;
    for (int64_t c = 0; c < o.width(); ++c)
      dot += o.q.data[Operands::at(o.q, o.heads, sample, query, head, c)] *
             o.k.data[Operands::at(o.k, o.heads, sample, key, head, c)];
    scores[static_cast<size_t>(key)] = disturbance.apply(dot * o.scale());
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  Seen seen = {std::vector<double>(scores.size(), 0.0), std::vector<double>(scores.size(), 1.0),
               std::numeric_limits<double>::infinity(), 0};
  if (o.dropout > 0) {
    const int64_t row = (sample * o.all_heads + o.first_head + head) * o.queries() + query;
    seen.factors =
        dropout_factors(mix_key({o.key, static_cast<uint64_t>(row)}), o.dropout, o.keys());
  }
  if (std::isinf(largest)) return seen;
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - largest);
  for (size_t i = 0; i < scores.size(); ++i)
    seen.probabilities[i] = std::exp(scores[i] - largest) / sum;
  seen.largest = largest;
  seen.rest = std::log(sum);
  return seen;
}

template <typename Body>
void for_each_query(const Operands& o, const Body& body) {
  for (int64_t sample = 0; sample < o.batch(); ++sample)
    for (int64_t head = 0; head < o.heads; ++head)
      for (int64_t query = 0; query < o.queries(); ++query) body(sample, head, query);
}

Arrays attention(const Call& call) {
  const Operands o = operands_of(call, 0);
  Array y = zeros(call.out_shape()), log_sums = {call.out_shape(1), {}};
  for_each_query(o, [&](int64_t sample, int64_t head, int64_t query) {
    const Seen seen = look(o, sample, head, query, call.disturbance);
    log_sums.data.insert(log_sums.data.end(), {seen.largest, seen.rest});
    for (int64_t key = 0; key < o.keys(); ++key)
      for (int64_t c = 0; c < o.width(); ++c)
        y.data[Operands::at(y, o.heads, sample, query, head, c)] +=
            seen.probabilities[key] * seen.factors[key] *
            o.v.data[Operands::at(o.v, o.heads, sample, key, head, c)];
  });
  return {y, log_sums};
}

// The gradients of q, k and v, side by side if the inputs were.
Arrays attention_gradients(const Call& call, const Operands& o, const Array& dy) {
  Array dq = zeros(o.q.shape), dk = zeros(o.k.shape), dv = zeros(o.v.shape);
  for_each_query(o, [&](int64_t sample, int64_t head, int64_t query) {
    const Seen seen = look(o, sample, head, query, call.disturbance);
    const auto at = [&](const Array& x, int64_t position, int64_t c) {
      return Operands::at(x, o.heads, sample, position, head, c);
    };
    std::vector<double> dp(static_cast<size_t>(o.keys()), 0.0);  // of the probabilities
    double mean = 0;
    for (int64_t key = 0; key < o.keys(); ++key) {
      for (int64_t c = 0; c < o.width(); ++c) {
        const double g = dy.data[at(dy, query, c)];
        dp[key] += seen.factors[key] * g * o.v.data[at(o.v, key, c)];
        dv.data[at(dv, key, c)] += seen.factors[key] * seen.probabilities[key] * g;
      }
      mean += seen.probabilities[key] * dp[key];
    }
    for (int64_t key = 0; key < o.keys(); ++key) {
      const double ds =
          seen.probabilities[key] * (call.disturbance.apply(dp[key]) - mean) * o.scale();
      for (int64_t c = 0; c < o.width(); ++c) {
        dq.data[at(dq, query, c)] += ds * o.k.data[at(o.k, key, c)];
        dk.data[at(dk, key, c)] += ds * o.q.data[at(o.q, query, c)];
      }
    }
  });
  if (call.flag("packed")) return {side_by_side({dq, dk, dv})};
  return {dq, dk, dv};
}

Arrays attention_gradient(const Call& call) {
  Arrays results = attention_gradients(call, operands_of(call, 0), call.dy());
  results.resize(call.inputs.size());  // none for the mask
  return results;
}

// Inputs: dy, the logarithms (which are recomputed here), then those of attention.
Arrays attention_backward(const Call& call) {
  return attention_gradients(call, operands_of(call, 2), call.in(0));
}

// Each head of x [1, positions, heads * width] `times` times, one after another.
Array repeat_heads(const Array& x, int64_t heads, int64_t times) {
  std::vector<Array> parts;
  const int64_t width = x.shape[2] / heads;
  for (int64_t head = 0; head < heads * times; ++head)
    parts.push_back(columns(x, head / times * width, width));
  return side_by_side(parts);
}

// qkv [1, tokens, width + 2 * key_width], a cache [2, positions, key_width] of keys and values, and
// the places of the new tokens, which lie one after another.
Arrays cached_attention(const Call& call) {
  const Array& qkv = call.in(0);
  Array& cache = *call.inputs[1];
  const int64_t heads = call.attributes().integer("heads");
  const int64_t key_heads = call.attributes().integer("key_heads");
  const int64_t tokens = qkv.shape[1], positions = cache.shape[1], width = cache.shape[2];
  const int64_t query_width = width / key_heads * heads;
  const auto first = static_cast<int64_t>(call.in(2).data[0]);
  require(first >= 0 && first + tokens <= positions, ErrorKind::invalid_argument,
          "[reference] cached_attention: got places {} to {}, expected at most {}", first,
          first + tokens - 1, positions - 1);
  const Array fresh[2] = {columns(qkv, query_width, width),
                          columns(qkv, query_width + width, width)};
  for (int64_t part = 0; part < 2; ++part)
    for (int64_t i = 0; i < tokens * width; ++i)
      cache.data[static_cast<size_t>((part * positions + first) * width + i)] =
          fresh[part].data[static_cast<size_t>(i)];
  // Causal attention of the new tokens to all rows up to the last of them.
  const auto rows = [&](int64_t part) {
    const auto begin = cache.data.begin() + part * positions * width;
    const Array kept = {{1, first + tokens, width}, {begin, begin + (first + tokens) * width}};
    return repeat_heads(kept, key_heads, heads / key_heads);
  };
  const Operands o = {.q = columns(qkv, 0, query_width),
                      .k = rows(0),
                      .v = rows(1),
                      .heads = heads,
                      .causal = true,
                      .dropout = 0,
                      .key = 0};
  Array y = zeros(call.out_shape());
  for_each_query(o, [&](int64_t sample, int64_t head, int64_t query) {
    const Seen seen = look(o, sample, head, query, call.disturbance);
    for (int64_t key = 0; key < o.keys(); ++key)
      for (int64_t c = 0; c < o.width(); ++c)
        y.data[Operands::at(y, o.heads, sample, query, head, c)] +=
            seen.probabilities[key] * o.v.data[Operands::at(o.v, o.heads, sample, key, head, c)];
  });
  return {y};
}

// Pairs (a, b) of each head become (a cos - b sin, b cos + a sin).
Array rotated(const Call& call, const Array& x, bool inverse) {
  const int64_t positions = x.shape[1], width = x.shape[2];
  const int64_t part = width / call.attributes().integer("heads"), half = part / 2;
  Array y = x;
  for (int64_t at = 0; at < x.shape[0] * positions * width; ++at) {
    const int64_t i = at % part % half, position = at / width % positions;
    if (at % part >= half) continue;
    const int64_t place =
        call.count() == 3 ? static_cast<int64_t>(call.in(2).data[position]) : position;
    const double c = call.in(1).data[place * part + i];
    const double s = call.in(1).data[place * part + half + i] * (inverse ? -1 : 1);
    const double a = x.data[at], b = x.data[at + half];
    y.data[at] = a * c - b * s;
    y.data[at + half] = b * c + a * s;
  }
  return y;
}

Arrays rotary(const Call& call) { return {rotated(call, call.in(0), call.flag("inverse"))}; }

Arrays rotary_gradient(const Call& call) {
  Arrays results(call.inputs.size());
  results[0] = rotated(call, call.dy(), !call.flag("inverse"));
  return results;
}

}  // namespace

std::vector<Rule> attention_rules() {
  return {{"attention", attention, attention_gradient},
          {"attention_backward", attention_backward},
          {"cached_attention", cached_attention},
          {"rotary", rotary, rotary_gradient}};
}

}  // namespace artel::reference
