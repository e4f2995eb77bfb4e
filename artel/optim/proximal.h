// Proximal operators: x := argmin_u  penalty(u) + |u - x|^2 / 2, in place.
//
// A proximal gradient step is x := prox(x - rate * gradient) with the penalty's weight multiplied
// by the same rate. Weights must not be negative.
#pragma once

#include <span>

namespace artel::optim {

// l1 * sum |u| + l2 / 2 * sum u^2: shrinks values towards zero by l1, those that are smaller to
// exactly zero, and divides by 1 + l2.
void prox_elastic_net(std::span<float> x, float l1, float l2);

// weight * |u|, the length of the whole span: a group is kept, shortened, or zeroed as one.
void prox_group(std::span<float> x, float weight);

}  // namespace artel::optim
