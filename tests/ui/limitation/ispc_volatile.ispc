volatile uniform int changed; //~ error[limitation]: `volatile` variables are not supported yet
