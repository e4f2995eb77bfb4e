// Proximal operators: x := argmin_u  penalty(u) + |u - x|^2 / 2, in place.
//
// A proximal gradient step is x := prox(x - rate * gradient), with the penalty's weight multiplied
// by the same rate. Weights must be nonnegative.
#pragma once

#include <span>

namespace artel::optim {

// Penalty l1 * sum |u| + l2 / 2 * sum u^2: shrinks values by l1 towards zero (smaller ones become
// exactly zero) and divides by 1 + l2.
void prox_elastic_net(std::span<float> x, float l1, float l2);

// Penalty weight * |u|, the norm of the whole span: shrinks or zeroes a group as a whole.
void prox_group(std::span<float> x, float weight);

}  // namespace artel::optim
